#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "devices/device.h"
#include "devices/fake/flows.h"

namespace coterie::fake {

/// What an event knows: how often it was recorded, up to which record streams have come, and how that ended.
struct EventRecord {
    std::uint64_t recorded = 0;
    std::uint64_t passed = 0;
    bool failed = false;
    Nanoseconds at{0};  ///< when the last one was passed
};

/// One entry of a stream.
struct Operation {
    enum class Kind { Work, Copy, Record, Wait };
    enum class Fault { None, Fails, LosesDevice };
    Kind kind = Kind::Work;
    Fault fault = Fault::None;
    std::function<void()> begin{};   ///< when it starts, or empty
    std::function<void()> effect{};  ///< when it ends; throws: it failed
    Nanoseconds duration{0};         ///< of Work; latency of a Copy
    // Of a Copy over a link.
    int engine = -1;
    double bytes = 0;
    double rate = 0;  ///< 0: takes no time
    // Of Record and Wait.
    std::shared_ptr<EventRecord> event{};
    std::uint64_t generation = 0;  ///< the record that is made or awaited
};

/// One stream's work. Begins with the operation that runs, or runs next.
struct Queue {
    enum class Phase { Waiting, Latency, Flowing };
    int device = 0;
    std::string failure;  ///< why it failed; empty: it did not
    std::deque<Operation> operations;
    Phase phase = Phase::Waiting;
    std::uint64_t order = 0;  ///< when the first operation became first, for a fair choice
    Nanoseconds ends{0};      ///< of Latency
    FlowId flow = 0;          ///< of Flowing
};

/// The order of all that happens on a fake machine, computed from the present queues whenever someone looks.
/// Thread-safe; effects run under its lock.
class Timeline {
  public:
    Timeline(Clock& clock, double ram_rate) : clock_(clock), now_(clock.now()), flows_(ram_rate) {}

    std::shared_ptr<Queue> add_queue(int device);
    void remove_queue(const std::shared_ptr<Queue>& queue);
    int add_engine();

    void enqueue(Queue& queue, Operation operation);
    void record(Queue& queue, const std::shared_ptr<EventRecord>& event);
    void wait_for(Queue& queue, const std::shared_ptr<EventRecord>& event);

    void pump();
    EventState state(const EventRecord& event);
    Nanoseconds passed_at(const EventRecord& event);
    /// At most for `limit`.
    EventState wait(const EventRecord& event, Nanoseconds limit);
    /// Waits until the queue is empty. Returns why it failed and forgets it; empty: it did not.
    std::string drain(Queue& queue);

    FlowId begin_flow(double bytes, double rate);
    void end_flow(FlowId id);
    void wait_flow(FlowId id);

    void lose(int device);
    bool lost(int device);

  private:
    void advance_to_now();
    Nanoseconds next_change() const;
    void start_all();
    bool start(Queue& queue);
    bool start_copy(Queue& queue);
    bool first_in_line(const Queue& queue) const;
    void finish_due();
    void finish(Queue& queue);
    void run(Queue& queue, const std::function<void()>& function);
    void pop(Queue& queue);
    void pass(EventRecord& event, std::uint64_t generation, bool failed);
    void lose_now(int device);
    bool is_lost(int device) const;
    EventState state_now(const EventRecord& event) const;
    template <typename Done>
    bool wait_until(Done done, Nanoseconds limit);

    Clock& clock_;
    std::mutex mutex_;
    Nanoseconds now_;
    Flows flows_;
    std::vector<std::shared_ptr<Queue>> queues_;
    std::vector<Queue*> engines_;  ///< [engine]: the queue that uses it, or null
    std::vector<int> lost_;        ///< devices
    std::uint64_t order_ = 0;
};

}  // namespace coterie::fake
