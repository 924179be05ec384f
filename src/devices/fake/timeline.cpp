#include "devices/fake/timeline.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace coterie::fake {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Other threads may queue work that ends earlier than what a waiting thread knows of.
constexpr Nanoseconds kSlice = milliseconds(1);
// Longer than anything but a stalled stream takes.
constexpr Nanoseconds kStalled = seconds(60);

}  // namespace

std::shared_ptr<Queue> Timeline::add_queue(int device) {
    const std::lock_guard lock(mutex_);
    auto queue = std::make_shared<Queue>();
    queue->device = device;
    queues_.push_back(queue);
    return queue;
}

void Timeline::remove_queue(const std::shared_ptr<Queue>& queue) {
    const std::lock_guard lock(mutex_);
    advance_to_now();
    if (queue->phase == Queue::Phase::Flowing) flows_.remove(queue->flow);
    std::replace(engines_.begin(), engines_.end(), queue.get(), static_cast<Queue*>(nullptr));
    for (const Operation& operation : queue->operations) {
        if (operation.kind == Operation::Kind::Record) pass(*operation.event, operation.generation, true);
    }
    std::erase(queues_, queue);
    start_all();
}

int Timeline::add_engine() {
    const std::lock_guard lock(mutex_);
    engines_.push_back(nullptr);
    return static_cast<int>(engines_.size()) - 1;
}

void Timeline::enqueue(Queue& queue, Operation operation) {
    const std::lock_guard lock(mutex_);
    advance_to_now();
    if (queue.operations.empty()) queue.order = ++order_;
    queue.operations.push_back(std::move(operation));
    start_all();
}

void Timeline::record(Queue& queue, const std::shared_ptr<EventRecord>& event) {
    std::uint64_t generation = 0;
    {
        const std::lock_guard lock(mutex_);
        generation = ++event->recorded;
    }
    enqueue(queue, {.kind = Operation::Kind::Record, .event = event, .generation = generation});
}

void Timeline::wait_for(Queue& queue, const std::shared_ptr<EventRecord>& event) {
    std::uint64_t generation = 0;
    {
        const std::lock_guard lock(mutex_);
        generation = event->recorded;
    }
    enqueue(queue, {.kind = Operation::Kind::Wait, .event = event, .generation = generation});
}

void Timeline::pump() {
    const std::lock_guard lock(mutex_);
    advance_to_now();
}

EventState Timeline::state(const EventRecord& event) {
    const std::lock_guard lock(mutex_);
    advance_to_now();
    return state_now(event);
}

EventState Timeline::wait(const EventRecord& event, Nanoseconds limit) {
    EventState state = EventState::Pending;
    wait_until(
        [&] {
            state = state_now(event);
            return state != EventState::Pending;
        },
        limit);
    return state;
}

std::string Timeline::drain(Queue& queue) {
    std::string failure = "a stream does not come to its end";
    wait_until(
        [&] {
            if (!queue.operations.empty()) return false;
            failure = std::exchange(queue.failure, {});
            return true;
        },
        kStalled);
    return failure;
}

FlowId Timeline::begin_flow(double bytes, double rate) {
    const std::lock_guard lock(mutex_);
    advance_to_now();
    return flows_.add(bytes, rate);
}

void Timeline::end_flow(FlowId id) {
    const std::lock_guard lock(mutex_);
    advance_to_now();
    flows_.remove(id);
}

void Timeline::wait_flow(FlowId id) {
    wait_until([&] { return flows_.done(id); }, Nanoseconds::max());
}

void Timeline::lose(int device) {
    const std::lock_guard lock(mutex_);
    advance_to_now();
    lose_now(device);
    start_all();
}

bool Timeline::lost(int device) {
    const std::lock_guard lock(mutex_);
    advance_to_now();
    return is_lost(device);
}

void Timeline::advance_to_now() {
    const Nanoseconds target = std::max(now_, clock_.now());
    for (Nanoseconds next = next_change(); next <= target; next = next_change()) {
        flows_.advance(next - now_);
        now_ = next;
        finish_due();
        start_all();
    }
    flows_.advance(target - now_);
    now_ = target;
}

Nanoseconds Timeline::next_change() const {
    Nanoseconds next = Nanoseconds::max();
    bool flowing = false;
    for (const auto& queue : queues_) {
        if (queue->phase == Queue::Phase::Latency) next = std::min(next, queue->ends);
        flowing |= queue->phase == Queue::Phase::Flowing;
    }
    if (!flowing) return next;
    return std::min(next, saturating_add(now_, flows_.until_next_done()));
}

void Timeline::start_all() {
    bool changed = true;
    while (changed) {
        changed = false;
        for (const auto& queue : queues_) {
            while (queue->phase == Queue::Phase::Waiting && !queue->operations.empty() && start(*queue)) {
                changed = true;
            }
        }
    }
}

bool Timeline::start(Queue& queue) {
    const Operation& operation = queue.operations.front();
    if (is_lost(queue.device)) queue.failure = "the device is lost";
    const bool failed = !queue.failure.empty();
    switch (operation.kind) {
        case Operation::Kind::Record:
            pass(*operation.event, operation.generation, failed);
            break;
        case Operation::Kind::Wait:
            if (!failed && operation.event->passed < operation.generation) return false;
            if (operation.event->failed && !failed) queue.failure = "work that was waited for failed";
            break;
        case Operation::Kind::Copy:
            if (!failed) return start_copy(queue);
            break;
        case Operation::Kind::Work:
            if (failed) break;
            queue.phase = Queue::Phase::Latency;
            queue.ends = saturating_add(now_, operation.duration);
            run(queue, operation.begin);
            return true;
    }
    pop(queue);
    return true;
}

bool Timeline::start_copy(Queue& queue) {
    const Operation& copy = queue.operations.front();
    Queue*& engine = engines_[static_cast<std::size_t>(copy.engine)];
    if (engine || !first_in_line(queue)) return false;
    engine = &queue;
    queue.phase = Queue::Phase::Latency;
    queue.ends = saturating_add(now_, copy.duration);
    run(queue, copy.begin);
    return true;
}

bool Timeline::first_in_line(const Queue& queue) const {
    return std::none_of(queues_.begin(), queues_.end(), [&](const auto& other) {
        return !other->operations.empty() && other->operations.front().kind == Operation::Kind::Copy &&
               other->operations.front().engine == queue.operations.front().engine &&
               other->order < queue.order;
    });
}

void Timeline::finish_due() {
    for (const auto& queue : queues_) {
        if (queue->phase == Queue::Phase::Latency && queue->ends <= now_) {
            const Operation& operation = queue->operations.front();
            if (operation.kind == Operation::Kind::Copy && operation.bytes > 0 && operation.rate > 0) {
                queue->phase = Queue::Phase::Flowing;
                queue->flow = flows_.add(operation.bytes, operation.rate);
            } else {
                finish(*queue);
            }
        } else if (queue->phase == Queue::Phase::Flowing && flows_.done(queue->flow)) {
            finish(*queue);
        }
    }
}

void Timeline::finish(Queue& queue) {
    const Operation operation = std::move(queue.operations.front());
    if (queue.phase == Queue::Phase::Flowing) flows_.remove(queue.flow);
    if (operation.engine >= 0) engines_[static_cast<std::size_t>(operation.engine)] = nullptr;
    pop(queue);
    if (operation.fault == Operation::Fault::None) {
        run(queue, operation.effect);
        return;
    }
    queue.failure = "a copy failed, as it was told to";
    if (operation.fault == Operation::Fault::LosesDevice) lose_now(queue.device);
}

/// `begin` or `effect` of an operation, unless the queue has failed.
void Timeline::run(Queue& queue, const std::function<void()>& function) {
    if (!function || !queue.failure.empty()) return;
    try {
        function();
    } catch (const std::exception& error) {
        queue.failure = error.what();
    }
}

void Timeline::pop(Queue& queue) {
    queue.operations.pop_front();
    queue.phase = Queue::Phase::Waiting;
    queue.order = ++order_;
}

Nanoseconds Timeline::passed_at(const EventRecord& event) {
    const std::lock_guard lock(mutex_);
    return event.at;
}

void Timeline::pass(EventRecord& event, std::uint64_t generation, bool failed) {
    if (event.passed >= generation) return;
    event.passed = generation;
    event.failed = failed;
    event.at = now_;
}

void Timeline::lose_now(int device) {
    if (!is_lost(device)) lost_.push_back(device);
    for (const auto& queue : queues_) {
        if (queue->device != device || queue->phase == Queue::Phase::Waiting) continue;
        if (queue->phase == Queue::Phase::Flowing) flows_.remove(queue->flow);
        const int engine = queue->operations.front().engine;
        if (engine >= 0) engines_[static_cast<std::size_t>(engine)] = nullptr;
        pop(*queue);
    }
}

bool Timeline::is_lost(int device) const {
    return std::find(lost_.begin(), lost_.end(), device) != lost_.end();
}

EventState Timeline::state_now(const EventRecord& event) const {
    if (event.passed < event.recorded) return EventState::Pending;
    return event.failed ? EventState::Failed : EventState::Reached;
}

template <typename Done>
bool Timeline::wait_until(Done done, Nanoseconds limit) {
    const Nanoseconds deadline = saturating_add(clock_.now(), limit);
    while (true) {
        Nanoseconds target{};
        {
            const std::lock_guard lock(mutex_);
            advance_to_now();
            if (done()) return true;
            if (now_ >= deadline) return false;
            target = std::min({next_change(), deadline, saturating_add(now_, kSlice)});
        }
        clock_.wait_until(target);
    }
}

}  // namespace coterie::fake
