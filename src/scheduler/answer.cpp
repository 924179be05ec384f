#include "scheduler/answer.h"

namespace coterie::scheduler {

void EventQueue::push(Event event) {
    {
        const std::lock_guard lock(bell_->mutex);
        events_.push_back(std::move(event));
        size_.store(events_.size(), std::memory_order_relaxed);
    }
    bell_->rang.notify_one();
}

std::optional<Event> EventQueue::take() {
    if (events_.empty()) return std::nullopt;
    Event event = std::move(events_.front());
    events_.pop_front();
    size_.store(events_.size(), std::memory_order_relaxed);
    return event;
}

std::optional<Event> EventQueue::pop(std::chrono::milliseconds patience) {
    std::unique_lock lock(bell_->mutex);
    bell_->rang.wait_for(lock, patience, [&] { return !events_.empty(); });
    return take();
}

std::optional<Answers::Arrival> Answers::next(std::chrono::milliseconds patience) {
    std::optional<Arrival> arrival;
    std::unique_lock lock(bell_->mutex);
    bell_->rang.wait_for(lock, patience, [&] {
        for (std::size_t i = 0; i < queues_.size() && !arrival; ++i) {
            const std::size_t answer = turn_++ % queues_.size();
            if (auto event = queues_[answer]->take()) arrival = Arrival{answer, std::move(*event)};
        }
        return arrival.has_value();
    });
    return arrival;
}

}  // namespace coterie::scheduler
