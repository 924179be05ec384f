#pragma once

#include <array>
#include <cstdint>

namespace coterie::expert_cache {

/// Whether prefetching pays, by the clock: it is on and off in turn for blocks of steps, and the side whose
/// tokens take less time gets seven of eight blocks from then on. The eighth is the other's, so that a change
/// of habits or of the machine is noticed. All that a guess does is in the time: the uploads' share of RAM,
/// experts that left for it, the router that ran twice. Used by one thread; allocates nothing.
class PrefetchJudge {
  public:
    static constexpr std::int32_t kBlockSteps = 32;

    /// Whether the running step prefetches.
    bool on() const { return on_; }
    /// A step is over; `seconds` for each of its tokens.
    void step_took(double seconds);

    /// Seconds of a token, over the last blocks; 0: not known yet.
    double seconds_with() const { return average_[1]; }
    double seconds_without() const { return average_[0]; }
    bool pays() const { return seconds_with() < seconds_without(); }
    /// Share of all steps that prefetched.
    double share_on() const;

  private:
    void end_block();

    bool on_ = true;
    std::array<double, kBlockSteps> block_{};
    std::int32_t steps_ = 0;  ///< of the block
    std::int64_t blocks_ = 0;
    std::array<std::int64_t, 2> counts_{};  ///< blocks without and with
    std::array<double, 2> average_{};
};

}  // namespace coterie::expert_cache
