#pragma once

#include <atomic>
#include <chrono>

namespace coterie {

using Nanoseconds = std::chrono::nanoseconds;

/// Time as seen by what waits and measures, so that tests can drive it. Thread-safe.
class Clock {
  public:
    virtual ~Clock() = default;

    /// Since an arbitrary start; never goes back.
    virtual Nanoseconds now() const = 0;
    /// Returns when `now()` is at least `time`.
    virtual void wait_until(Nanoseconds time) = 0;
};

/// The machine's own monotonic clock. Waits sleep, and spin for the last 60 us, which a sleep would
/// overshoot.
class SteadyClock final : public Clock {
  public:
    Nanoseconds now() const override;
    void wait_until(Nanoseconds time) override;
};

/// Stands still until someone waits or a test advances it: a wait jumps to its end at once.
class SimulatedClock final : public Clock {
  public:
    Nanoseconds now() const override { return Nanoseconds(now_.load()); }
    void wait_until(Nanoseconds time) override;
    void advance(Nanoseconds step) { now_.fetch_add(step.count()); }

  private:
    std::atomic<Nanoseconds::rep> now_{0};
};

/// `time` + `step`, at most the largest time there is; so "no limit" can be added to any time.
Nanoseconds saturating_add(Nanoseconds time, Nanoseconds step);

}  // namespace coterie
