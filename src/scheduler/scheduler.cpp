#include "scheduler/scheduler.h"

#include <future>
#include <utility>

#include "base/error.h"

namespace coterie::scheduler {
namespace {

constexpr std::chrono::seconds kHousekeeping{1};

}  // namespace

Scheduler::Scheduler(engine::Engine& engine, const Tokenizer& tokenizer, const SchedulerOptions& options,
                     std::function<void()> housekeeping)
    : engine_(engine),
      tokenizer_(tokenizer),
      options_(options),
      housekeeping_(std::move(housekeeping)),
      usage_(engine),
      runner_(engine, options, counters_, usage_),
      queue_(options.queue_limit),
      house_kept_(std::chrono::steady_clock::now()),
      thread_([this] { run(); }) {}

Scheduler::~Scheduler() {
    {
        const std::lock_guard lock(mutex_);
        draining_ = cancel_rest_ = stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Scheduler::check(const Request& request) const {
    const auto tokens = static_cast<std::int64_t>(request.prompt.size());
    if (tokens == 0) fail(ErrorCode::InvalidArgument, "the prompt is empty; give at least one token");
    if (tokens > engine_.context() - (request.embedding ? 0 : 1)) {
        fail(ErrorCode::InvalidArgument,
             "the prompt has {} tokens, but the maximum context length is {} tokens{}; use a shorter prompt, "
             "or start the server with a larger -c",
             tokens, engine_.context(), request.embedding ? "" : ", for the prompt and its answer");
    }
    for (const TokenId token : request.prompt) {
        if (token >= 0 && token < engine_.config().vocabulary) continue;
        fail(ErrorCode::InvalidArgument, "token {} is outside the model's vocabulary of {}", token,
             engine_.config().vocabulary);
    }
    if (request.slot && (*request.slot < 0 || *request.slot >= options_.slots)) {
        fail(ErrorCode::InvalidArgument, "slot {}: there are slots 0 to {}", *request.slot,
             options_.slots - 1);
    }
}

std::unique_ptr<Job> Scheduler::make_job(Request request, const Answers& answers) {
    request.bell = answers.bell();
    if (request.limit.count() == 0) request.limit = options_.request_limit;
    if (request.sampler) request.sampler->accept(request.prompt);
    return std::make_unique<Job>(std::move(request), next_number_++, tokenizer_, engine_.context());
}

/// Whether one more need not wait for a slot. Requires the lock.
bool Scheduler::slot_is_free() const {
    return static_cast<std::int64_t>(queue_.size()) + counters_.running.load() < options_.slots;
}

std::optional<Refusal> Scheduler::submit(std::vector<Request> parts, Answers& answers) {
    COTERIE_CHECK(!parts.empty());
    for (const Request& part : parts) check(part);
    const std::string client = parts.front().client;
    std::vector<std::unique_ptr<Job>> jobs;
    for (Request& part : parts) jobs.push_back(make_job(std::move(part), answers));
    std::unique_lock lock(mutex_);
    if (draining_) return Refusal::ShuttingDown;
    if (!slot_is_free() && !queue_.has_room(client)) {
        Counters::add(counters_.refused, 1);
        return Refusal::QueueFull;
    }
    for (const std::unique_ptr<Job>& job : jobs) answers.add(job->events());
    queue_.push(client, std::move(jobs));
    counters_.waiting.store(static_cast<std::int64_t>(queue_.size()), std::memory_order_relaxed);
    lock.unlock();
    changed_.notify_one();
    return std::nullopt;
}

bool Scheduler::drain(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    draining_ = true;
    changed_.notify_one();
    const bool answered = drained_.wait_for(lock, limit, [&] { return idle_ && queue_.size() == 0; });
    cancel_rest_ = true;
    lock.unlock();
    changed_.notify_one();
    return answered;
}

template <typename Result>
Result Scheduler::between_steps(std::function<Result(Runner&)> action) {
    const auto task = std::make_shared<std::packaged_task<Result()>>([&] { return action(runner_); });
    std::future<Result> result = task->get_future();
    {
        const std::lock_guard lock(mutex_);
        if (stop_) fail(ErrorCode::Cancelled, "the server is shutting down");
        tasks_.push_back([task] { (*task)(); });
    }
    changed_.notify_one();
    return result.get();
}

std::vector<SlotStatus> Scheduler::slots() {
    return between_steps<std::vector<SlotStatus>>([](Runner& runner) { return runner.status(); });
}
SavedSlot Scheduler::save_slot(int slot, const std::string& path) {
    return between_steps<SavedSlot>([&](Runner& runner) { return runner.save(slot, path); });
}
SavedSlot Scheduler::restore_slot(int slot, const std::string& path) {
    return between_steps<SavedSlot>([&](Runner& runner) { return runner.restore(slot, path); });
}
std::int64_t Scheduler::erase_slot(int slot) {
    return between_steps<std::int64_t>([&](Runner& runner) { return runner.erase(slot); });
}
DeviceReport Scheduler::device_report() {
    return between_steps<DeviceReport>([this](Runner&) { return report_devices(engine_); });
}

void Scheduler::run() {
    bool worked = false;
    while (true) {
        {
            std::unique_lock lock(mutex_);
            if (!worked) wait_for_work(lock);
            run_tasks(lock);
            drop_overdue();
            admit();
            if (cancel_rest_) runner_.finish_all(FinishReason::Cancelled);
            idle_ = runner_.idle();
            if (draining_ && idle_ && queue_.size() == 0) drained_.notify_all();
            if (stop_) return;
        }
        worked = runner_.step();
        if (worked && runner_.idle()) engine_.request_ended();  // nobody waits while slots change hands
        keep_house();
    }
}

/// Until something comes, a time limit passes, or a reader that had fallen behind may have caught up.
void Scheduler::wait_for_work(std::unique_lock<std::mutex>& lock) {
    constexpr std::chrono::milliseconds kLookAgain{20};
    if (runner_.idle()) {
        changed_.wait_for(lock, kHousekeeping, [&] { return !nothing_to_do() || cancel_rest_; });
    } else {
        changed_.wait_for(lock, kLookAgain, [&] { return !tasks_.empty() || stop_; });
    }
}

/// A task may write a file: the lock is not held meanwhile.
void Scheduler::run_tasks(std::unique_lock<std::mutex>& lock) {
    while (!tasks_.empty()) {
        const std::function<void()> task = std::move(tasks_.front());
        tasks_.pop_front();
        lock.unlock();
        task();
        lock.lock();
    }
}

void Scheduler::drop_overdue() {
    const SteadyTime now = std::chrono::steady_clock::now();
    const auto gone = queue_.extract(
        [&](const std::unique_ptr<Job>& job) { return cancel_rest_ || job->overdue(now).has_value(); });
    for (const std::unique_ptr<Job>& job : gone) {
        const FinishReason reason = job->overdue(now).value_or(FinishReason::Cancelled);
        Counters::add(reason == FinishReason::TimeLimit ? counters_.timed_out : counters_.cancelled, 1);
        job->finish(reason, now);
    }
}

void Scheduler::admit() {
    const auto has_room = [&](const std::unique_ptr<Job>& job) { return runner_.has_room(*job); };
    while (auto job = queue_.pop(has_room)) runner_.admit(std::move(*job));
    counters_.waiting.store(static_cast<std::int64_t>(queue_.size()), std::memory_order_relaxed);
}

void Scheduler::keep_house() {
    const SteadyTime now = std::chrono::steady_clock::now();
    if (!housekeeping_ || now - house_kept_ < kHousekeeping) return;
    house_kept_ = now;
    housekeeping_();
}

}  // namespace coterie::scheduler
