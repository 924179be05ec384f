#pragma once

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

/// Row of a pair that the host computed. The reads of its values are plain: they come after the host's reply,
/// whose fence makes them see what the host wrote before it.
__device__ __forceinline__ const float* host_output(const Mailbox& mailbox, std::int64_t pair, int width) {
    const auto row = *reinterpret_cast<const volatile std::int32_t*>(mailbox.rows + pair);
    return mailbox.outputs + static_cast<std::int64_t>(row) * width;
}

/// What the shared expert adds to a token's experts.
__device__ __forceinline__ float add_shared(const CombineArgs& args, std::int64_t token, float value,
                                            float sum) {
    return args.shared_gate != nullptr ? __fmaf_rn(law_sigmoid(args.shared_gate[token]), value, sum)
                                       : __fadd_rn(sum, value);
}

}  // namespace coterie::cuda
