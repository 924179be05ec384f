#pragma once

#include "kernels/cuda/device/lanes.cuh"
#include "kernels/cuda/device/timer.cuh"
#include "kernels/cuda/device/transcendental.cuh"
#include "kernels/cuda/moe.h"

/// The device's end of the hand-off: waiting for what the host computed, and where it lies.
namespace coterie::cuda {

inline constexpr std::uint64_t kPatienceNanoseconds = 900'000'000;

__device__ __forceinline__ std::uint64_t epoch_of(const StepCounters& counters, int layer) {
    return *counters.step * kEpochsPerStep + static_cast<unsigned>(layer) + 1;
}

/// One thread waits for the host's answer to a layer, or, where it does not come, says so and goes on.
__device__ inline void await_reply(const Mailbox& mailbox, std::uint64_t epoch) {
    const std::uint64_t begin = nanoseconds_now();
    while (*mailbox.reply < epoch) {
        if (nanoseconds_now() - begin < kPatienceNanoseconds) continue;
        *mailbox.failed = epoch;
        __threadfence_system();
        return;
    }
    __threadfence_system();
}

/// Row of a pair that the host computed, after its reply. The reads of its values are plain: they come after
/// the reply, whose fence makes them see what the host wrote before it.
__device__ __forceinline__ const float* host_output(const Mailbox& mailbox, std::int64_t pair, int width) {
    const auto row = *reinterpret_cast<const volatile std::int32_t*>(mailbox.rows + pair);
    return mailbox.outputs + static_cast<std::int64_t>(row) * width;
}

/// The same without a question to the host, by one warp and before the reply: the host's rows are in the
/// order of (expert, pair). `pairs`, all of the step's, are few. Where each block asks the host, the
/// questions for the same line are answered one after the other, 0.8 us each.
__device__ inline const float* counted_host_output(const Mailbox& mailbox, const std::uint64_t* slots,
                                                   const std::int32_t* experts, int pairs, int pair,
                                                   int width) {
    const std::int32_t expert = experts[pair];
    unsigned before = 0;
    for (int p = lane_index(); p < pairs; p += 32)
        if (slots[p] == 0 && (experts[p] < expert || (experts[p] == expert && p < pair))) ++before;
    return mailbox.outputs + static_cast<std::int64_t>(warp_sum(before)) * width;
}

/// What the shared expert adds to a token's experts.
__device__ __forceinline__ float add_shared(const CombineArgs& args, std::int64_t token, float value,
                                            float sum) {
    return args.shared_gate != nullptr ? __fmaf_rn(law_sigmoid(args.shared_gate[token]), value, sum)
                                       : __fadd_rn(sum, value);
}

}  // namespace coterie::cuda
