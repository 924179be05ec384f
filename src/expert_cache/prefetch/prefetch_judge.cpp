#include "expert_cache/prefetch/prefetch_judge.h"

#include <algorithm>

namespace coterie::expert_cache {
namespace {

constexpr std::int64_t kTrialBlocks = 4;  ///< in turn, before the first verdict
constexpr std::int64_t kLookAgain = 8;    ///< every so many blocks the losing side gets one
constexpr double kWeight = 0.25;          ///< of a block in the average

}  // namespace

void PrefetchJudge::step_took(double seconds) {
    block_[static_cast<std::size_t>(steps_++)] = seconds;
    if (steps_ == kBlockSteps) end_block();
}

/// The median speaks for the block: one late interrupt must not.
void PrefetchJudge::end_block() {
    const auto middle = block_.begin() + kBlockSteps / 2;
    std::nth_element(block_.begin(), middle, block_.end());
    const auto side = static_cast<std::size_t>(on_ ? 1 : 0);
    double& average = average_[side];
    average = counts_[side] == 0 ? *middle : average + kWeight * (*middle - average);
    ++counts_[side];
    ++blocks_;
    steps_ = 0;
    const bool trial = blocks_ < kTrialBlocks;
    on_ = trial ? !on_ : blocks_ % kLookAgain == 0 ? !pays() : pays();
}

double PrefetchJudge::share_on() const {
    const double with = static_cast<double>(counts_[1] * kBlockSteps + (on_ ? steps_ : 0));
    const double all = static_cast<double>(blocks_ * kBlockSteps + steps_);
    return all == 0 ? 0 : with / all;
}

}  // namespace coterie::expert_cache
