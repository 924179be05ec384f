#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/answer.h"
#include "scheduler/counters.h"
#include "scheduler/device_report.h"
#include "scheduler/expert_usage.h"
#include "scheduler/options.h"
#include "scheduler/queue/waiting_queue.h"
#include "scheduler/request.h"
#include "scheduler/run/runner.h"
#include "scheduler/status.h"

namespace coterie::scheduler {

/// Why a request was not taken: come back later.
enum class Refusal { QueueFull, ShuttingDown };

/// The door to continuous batching: any thread submits requests and reads answers; one thread of its own runs
/// the engine, which nobody else may use meanwhile.
class Scheduler {
  public:
    /// `housekeeping` is called by the engine's thread between steps, about once a second; it may be empty.
    Scheduler(engine::Engine& engine, const Tokenizer& tokenizer, const SchedulerOptions& options,
              std::function<void()> housekeeping = {});
    /// Cancels what is left.
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    /// Hands in all parts of what one client asks for, at least one; their events go to `answers`. All are
    /// taken or none, and then there is a reason: the queue counts them as one.
    /// Throws InvalidArgument for a prompt that is empty or leaves no room for an answer, a token outside the
    /// vocabulary, or a slot that does not exist.
    [[nodiscard]] std::optional<Refusal> submit(std::vector<Request> parts, Answers& answers);

    /// Takes no more requests, and waits until all are answered or `limit` is over, when the rest is
    /// cancelled. Whether all were answered.
    bool drain(std::chrono::milliseconds limit);

    std::vector<SlotStatus> slots();
    SavedSlot save_slot(int slot, const std::string& path);
    SavedSlot restore_slot(int slot, const std::string& path);
    std::int64_t erase_slot(int slot);

    /// Waits for the step that runs. Throws Cancelled where the scheduler is ending.
    DeviceReport device_report();

    const Counters& counters() const { return counters_; }
    const ExpertUsage& expert_usage() const { return usage_; }
    const SchedulerOptions& options() const { return options_; }
    /// Of the model: what never changes is free to read from any thread.
    engine::Engine& engine() const { return engine_; }

  private:
    template <typename Result>
    Result between_steps(std::function<Result(Runner&)> action);
    void check(const Request& request) const;
    bool slot_is_free() const;
    std::unique_ptr<Job> make_job(Request request, const Answers& answers);
    void run();
    void wait_for_work(std::unique_lock<std::mutex>& lock);
    bool nothing_to_do() const { return tasks_.empty() && queue_.size() == 0 && !stop_; }
    void run_tasks(std::unique_lock<std::mutex>& lock);
    void admit();
    void drop_overdue();
    void keep_house();

    engine::Engine& engine_;
    const Tokenizer& tokenizer_;
    SchedulerOptions options_;
    std::function<void()> housekeeping_;
    Counters counters_;
    ExpertUsage usage_;
    Runner runner_;  ///< of the thread alone

    std::atomic<std::uint64_t> next_number_{1};  ///< of a job

    std::mutex mutex_;  ///< guards what follows
    std::condition_variable changed_;
    std::condition_variable drained_;
    WaitingQueue<std::unique_ptr<Job>> queue_;
    std::deque<std::function<void()>> tasks_;
    bool draining_ = false;
    bool cancel_rest_ = false;
    bool stop_ = false;
    bool idle_ = true;

    SteadyTime house_kept_;
    std::thread thread_;
};

}  // namespace coterie::scheduler
