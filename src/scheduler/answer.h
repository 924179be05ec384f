#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/event.h"

namespace coterie::scheduler {

/// Rings when something arrives in any of the queues that share it.
struct Bell {
    std::mutex mutex;
    std::condition_variable rang;
};

/// Events on their way from the scheduler's thread to the thread that asked.
///
/// Bounded: the scheduler does not go on with an answer whose reader has fallen `kCapacity` events behind,
/// and has room for the last event all the same.
class EventQueue {
  public:
    static constexpr std::size_t kCapacity = 256;

    explicit EventQueue(std::shared_ptr<Bell> bell) : bell_(std::move(bell)) {}

    // The scheduler's side.

    void push(Event event);
    /// Whether the reader has fallen behind.
    bool full() const { return size_.load(std::memory_order_relaxed) >= kCapacity; }
    /// Whether the reader has left.
    bool closed() const { return closed_.load(std::memory_order_relaxed); }

    // The reader's side.

    /// Nothing where none comes in time.
    std::optional<Event> pop(std::chrono::milliseconds patience);
    /// Nothing where none is there. Requires the bell's mutex to be held.
    std::optional<Event> take();
    void close() { closed_.store(true, std::memory_order_relaxed); }

  private:
    std::shared_ptr<Bell> bell_;  ///< its mutex guards events_
    std::deque<Event> events_;
    std::atomic<std::size_t> size_{0};
    std::atomic<bool> closed_{false};
};

/// The reader's end of one or several requests that were submitted with the same bell. Going before their
/// last events cancels them.
class Answers {
  public:
    explicit Answers(std::shared_ptr<Bell> bell) : bell_(std::move(bell)) {}
    ~Answers() {
        for (const auto& queue : queues_) queue->close();
    }
    Answers(Answers&&) = default;
    Answers& operator=(Answers&&) = delete;

    void add(std::shared_ptr<EventQueue> queue) { queues_.push_back(std::move(queue)); }
    const std::shared_ptr<Bell>& bell() const { return bell_; }
    std::size_t size() const { return queues_.size(); }

    struct Arrival {
        std::size_t answer;  ///< by the order of `add`
        Event event;
    };
    /// The next event of any; nothing where none comes in time. Those of one answer come in their order.
    std::optional<Arrival> next(std::chrono::milliseconds patience);

  private:
    std::shared_ptr<Bell> bell_;
    std::vector<std::shared_ptr<EventQueue>> queues_;
    std::size_t turn_ = 0;
};

}  // namespace coterie::scheduler
