#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace coterie::cli {

/// SIGTERM and SIGINT while a server runs: the first asks it to end, the second ends the program at once.
///
/// Make it before any other thread, so that all of them leave the signals to its own.
class EndSignals {
  public:
    EndSignals();
    ~EndSignals();
    EndSignals(const EndSignals&) = delete;
    EndSignals& operator=(const EndSignals&) = delete;

    bool requested() const { return requested_; }
    /// Until a signal comes.
    void wait();

  private:
    void watch();

    std::atomic<bool> requested_{false};
    std::atomic<bool> stop_{false};
    std::mutex mutex_;
    std::condition_variable came_;
    std::thread thread_;
};

}  // namespace coterie::cli
