#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/clock.h"

namespace coterie::fake {

using FlowId = std::uint64_t;

/// Transfers that run at once and share one rate, as fluids: each gets an equal part, or as much as it can
/// use where that is less.
class Flows {
  public:
    static constexpr double kEndless = std::numeric_limits<double>::infinity();

    /// `shared_rate` in bytes per second; 0: no limit.
    explicit Flows(double shared_rate) : shared_rate_(shared_rate > 0 ? shared_rate : kEndless) {}

    /// `bytes` may be kEndless, for a flow that lasts until it is removed. `rate` > 0.
    FlowId add(double bytes, double rate);
    void remove(FlowId id);

    void advance(Nanoseconds time);
    /// Until the next flow is done, rounded up; `Nanoseconds::max()` where none will be.
    Nanoseconds until_next_done() const;
    bool done(FlowId id) const;

  private:
    struct Flow {
        FlowId id;
        double bytes;  ///< left
        double limit;
        double rate = 0;
    };
    void share_out();

    double shared_rate_;
    std::vector<Flow> flows_;  ///< by ascending limit
    FlowId last_id_ = 0;
};

}  // namespace coterie::fake
