#include "kernels/cuda/check.h"
#include "kernels/cuda/device/timer.cuh"
#include "kernels/cuda/hand_off.h"

namespace coterie::cuda {
namespace {

constexpr std::uint64_t kPatienceNanoseconds = 900'000'000;

__device__ bool await_round(const HandOffWords& words, std::uint64_t round) {
    const std::uint64_t begin = nanoseconds_now();
    while (*words.reply < round) {
        if (nanoseconds_now() - begin >= kPatienceNanoseconds) return false;
    }
    return true;
}

/// A lone thread: what several add is the work's, not the exchange's.
__global__ void hand_off_kernel(const HandOffWords words, std::uint64_t rounds) {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        *words.request = round;
        __threadfence_system();
        if (await_round(words, round)) continue;
        *words.failed = round;
        __threadfence_system();
        return;
    }
}

}  // namespace

void hand_off(const HandOffWords& words, std::uint64_t rounds, CUstream_st* stream) {
    hand_off_kernel<<<1, 1, 0, stream>>>(words, rounds);
    check_launch("hand_off");
}

}  // namespace coterie::cuda
