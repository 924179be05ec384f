#pragma once

#include <atomic>
#include <chrono>
#include <semaphore>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <thread>

#include "chat/template_worker.h"

namespace coterie {

/// A file descriptor that is closed with its owner.
class OwnedDescriptor {
  public:
    explicit OwnedDescriptor(int descriptor = -1) : descriptor_(descriptor) {}
    OwnedDescriptor(OwnedDescriptor&& other) noexcept : descriptor_(other.release()) {}
    OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept;
    ~OwnedDescriptor() { close(); }

    int get() const { return descriptor_; }
    void close();

  private:
    int release();

    int descriptor_;
};

struct WorkerReply {
    bool accepted = false;
    std::string body;  ///< the answer if accepted, else a JSON object that says what is wrong
};

enum class Talk {
    Done,
    TooLate,  ///< the deadline passed
    Ended,    ///< the process ended, or broke the protocol
};

/// One run of the worker program (worker/channel.py has the protocol). Not thread-safe.
///
/// A thread of this object starts the process and lives until the process has been stopped: Linux ends a
/// child with the *thread* that started it (PR_SET_PDEATHSIG), so that no worker stays when this program is
/// killed.
class WorkerProcess {
  public:
    static constexpr int kCannotRun = 127;  ///< exit status where the interpreter is not there

    /// Begins the start and returns; the first reply to `receive` says whether it went well.
    explicit WorkerProcess(const WorkerOptions& options);
    ~WorkerProcess() { stop(); }

    Talk exchange(std::string_view request, std::chrono::milliseconds deadline, WorkerReply& reply);
    Talk receive(std::chrono::milliseconds deadline, WorkerReply& reply);

    /// Ends the process if it runs; returns its wait status.
    int stop();

    /// 0 before it has started.
    pid_t id() const { return process_id_; }

    bool ready() const { return ready_; }
    void set_ready() { ready_ = true; }

  private:
    void keep(OwnedDescriptor program, OwnedDescriptor channel);

    const WorkerOptions options_;
    OwnedDescriptor channel_;
    bool ready_ = false;
    std::atomic<pid_t> process_id_{0};
    int wait_status_ = 0;  // the keeper's until it is joined
    std::binary_semaphore stop_{0};
    std::thread keeper_;
};

}  // namespace coterie
