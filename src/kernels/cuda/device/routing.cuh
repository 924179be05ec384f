#pragma once

#include "kernels/cuda/device/lanes.cuh"
#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/device/timer.cuh"
#include "kernels/cuda/device/transcendental.cuh"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/moe.h"

/// How a block routes a token: its first warp chooses (src/kernels/cpu/route.h), all of it hands the token
/// over where experts are missing.
namespace coterie::cuda {

inline constexpr float kSmallestSum = 6.103515625e-5f;

struct RouteShared {
    float probabilities[kMostExperts];
    float scores[kMostExperts];
    float group_scores[kMostExperts / 2];
    std::int32_t chosen[kMostUsed];
    float weights[kMostUsed];
    int missing;
};

/// softmax over values[0, n) by one warp, in place: src/kernels/reference/softmax.cpp.
__device__ inline void soften(float* values, int n) {
    float maximum = -INFINITY;
    for (int i = lane_index(); i < n; i += 32) maximum = fmaxf(maximum, values[i]);
    maximum = warp_maximum(maximum);
    float lane = 0.0f;
    for (int i = lane_index(); i < n; i += 32) {
        values[i] = law_exp(__fsub_rn(values[i], maximum));
        lane = __fadd_rn(lane, values[i]);
    }
    const float sum = fold_lanes(lane);
    for (int i = lane_index(); i < n; i += 32) values[i] = __fdiv_rn(values[i], sum);
    __syncwarp();
}

__device__ inline float two_best_sum(const float* scores, int count) {
    float first = -INFINITY;
    float second = -INFINITY;
    for (int i = 0; i < count; ++i) {
        if (scores[i] > first) {
            second = first;
            first = scores[i];
        } else if (scores[i] > second) {
            second = scores[i];
        }
    }
    return count > 1 ? __fadd_rn(first, second) : first;
}

__device__ inline void drop_weak_groups(const cpu::Routing& routing, RouteShared& shared) {
    const int groups = static_cast<int>(routing.groups);
    const int size = static_cast<int>(routing.experts) / groups;
    for (int g = lane_index(); g < groups; g += 32)
        shared.group_scores[g] = two_best_sum(shared.scores + g * size, size);
    __syncwarp();
    for (int g = lane_index(); g < groups; g += 32) {
        int better = 0;
        for (int other = 0; other < groups; ++other) {
            const bool tie_lost = shared.group_scores[other] == shared.group_scores[g] && other < g;
            better += shared.group_scores[other] > shared.group_scores[g] || tie_lost;
        }
        if (better < routing.groups_used) continue;
        for (int i = 0; i < size; ++i) shared.scores[g * size + i] = -INFINITY;
    }
    __syncwarp();
}

/// Scores as integers of the same order; NaN below all of them.
__device__ inline unsigned ordered(float score) {
    if (isnan(score)) return 0;
    const unsigned bits = __float_as_uint(__fadd_rn(score, 0.0f));  // -0 as +0
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/// A lane's experts: lane, lane + 32 ...
template <int kPerLane>
struct LaneScores {
    unsigned keys[kPerLane];
    unsigned untaken = 0;  ///< bits
};

/// The law scans from the lowest index that is not taken and moves on to what is larger. So ties go to the
/// lower index; where the first score is NaN it stays, and later ones that are NaN never win.
template <int kPerLane>
__device__ int take_best(LaneScores<kPerLane>& lane_scores, bool any_nan) {
    const unsigned lane = static_cast<unsigned>(lane_index());
    constexpr unsigned kNone = 0xffffffffu;
    if (any_nan) {
        const unsigned mine =
            lane_scores.untaken == 0
                ? kNone
                : lane + 32 * static_cast<unsigned>(__ffs(static_cast<int>(lane_scores.untaken)) - 1);
        const unsigned lowest = warp_minimum(mine);
        unsigned key = 1;
#pragma unroll
        for (int i = 0; i < kPerLane; ++i)
            if (lowest == lane + 32u * i) key = lane_scores.keys[i];
        if (__any_sync(kFullWarp, key == 0)) {
            if (lowest % 32 == lane) lane_scores.untaken &= ~(1u << lowest / 32);
            return static_cast<int>(lowest);
        }
    }
    unsigned best = 0;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i)
        if (lane_scores.untaken >> i & 1) best = max(best, lane_scores.keys[i]);
    best = warp_maximum(best);
    unsigned index = kNone;
#pragma unroll
    for (int i = kPerLane - 1; i >= 0; --i)
        if ((lane_scores.untaken >> i & 1) && lane_scores.keys[i] == best) index = lane + 32u * i;
    index = warp_minimum(index);
    if (index % 32 == lane) lane_scores.untaken &= ~(1u << index / 32);
    return static_cast<int>(index);
}

template <int kPerLane>
__device__ void take_ranks(RouteShared& shared, int experts, int used) {
    LaneScores<kPerLane> scores;
    bool nan = false;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
        const int expert = lane_index() + 32 * i;
        scores.keys[i] = 0;
        if (expert >= experts) continue;
        scores.keys[i] = ordered(shared.scores[expert]);
        nan |= scores.keys[i] == 0;
        scores.untaken |= 1u << i;
    }
    const bool any_nan = __any_sync(kFullWarp, nan);
    for (int rank = 0; rank < used; ++rank) {
        const int best = take_best(scores, any_nan);
        if (lane_index() == rank) {
            shared.chosen[rank] = best;
            shared.weights[rank] = shared.probabilities[best];
        }
    }
    __syncwarp();
}

__device__ inline void choose(const RouteArgs& args, std::int64_t token, RouteShared& shared) {
    const cpu::Routing& routing = args.routing;
    const int experts = static_cast<int>(routing.experts);
    const int used = static_cast<int>(routing.used);
    const float* logits = args.logits + token * args.logits_stride;
    for (int i = lane_index(); i < experts; i += 32) {
        const float logit = __ldcg(logits + i);
        shared.probabilities[i] = routing.gating == cpu::Gating::Sigmoid ? law_sigmoid(logit) : logit;
    }
    __syncwarp();
    if (routing.gating == cpu::Gating::Softmax) soften(shared.probabilities, experts);
    for (int i = lane_index(); i < experts; i += 32) {
        const float p = shared.probabilities[i];
        shared.scores[i] = args.selection_bias != nullptr ? __fadd_rn(p, args.selection_bias[i]) : p;
    }
    __syncwarp();
    if (routing.groups > 1) drop_weak_groups(routing, shared);

    if (experts <= 128) {
        take_ranks<4>(shared, experts, used);
    } else if (experts <= 512) {
        take_ranks<16>(shared, experts, used);
    } else {
        take_ranks<32>(shared, experts, used);
    }
    if (routing.gating == cpu::Gating::SoftmaxOfSelected) soften(shared.weights, used);
    float factor = 1.0f;
    if (routing.normalise) {
        float sum = 0.0f;
        for (int rank = 0; rank < used; ++rank) sum = __fadd_rn(sum, shared.weights[rank]);
        factor = sum < kSmallestSum ? kSmallestSum : sum;
    }
    __syncwarp();
    if (lane_index() < used) {
        float weight = shared.weights[lane_index()];
        if (routing.normalise) weight = __fdiv_rn(weight, factor);
        shared.weights[lane_index()] = __fmul_rn(weight, routing.scale);
    }
    __syncwarp();
}

/// Writes the choice where the kernels and the host read it, and counts what is missing.
__device__ inline void publish(const RouteArgs& args, std::int64_t token, RouteShared& shared) {
    const int used = static_cast<int>(args.routing.used);
    const int rank = lane_index();
    const std::int64_t routed =
        (static_cast<std::int64_t>(args.layer) * args.max_tokens + token) * used + rank;
    bool misses = false;
    std::uint64_t slot = 0;
    if (rank < used) {
        const std::int64_t pair = token * used + rank;
        const std::int32_t expert = shared.chosen[rank];
        slot = args.residents[expert];
        args.experts[pair] = expert;
        args.weights[pair] = shared.weights[rank];
        args.counters.experts[routed] = expert;
        args.counters.weights[routed] = shared.weights[rank];
        misses = slot == 0;
    }
    const unsigned missing = __ballot_sync(kFullWarp, misses);
    const int linked = args.link.of[__popc(missing)];
    if (misses && __popc(missing & ((1u << rank) - 1)) < linked) slot = kOnHost;
    if (rank < used) args.slots[token * used + rank] = slot;
    const int count = __popc(missing) - linked;
    // Of several tokens any may have misses, and the host then looks at all of them.
    if (rank < used && (count > 0 || args.tokens > 1)) args.mailbox.experts[routed] = shared.chosen[rank];
    if (rank == 0) shared.missing = count;
}

__device__ inline void hand_over(const RouteArgs& args, std::int64_t token) {
    const Mailbox& to = args.mailbox;
    const ActivationBuffer& from = args.x.quantised;
    const int groups = (args.columns + 31) / 32;
    const int threads = static_cast<int>(blockDim.x);
    if (from.quants != nullptr) {
        const auto* quants = reinterpret_cast<const uint4*>(from.quants + token * from.groups * 32);
        auto* posted = reinterpret_cast<uint4*>(to.quants + token * to.groups * 32);
        for (int i = static_cast<int>(threadIdx.x); i < 2 * groups; i += threads)
            posted[i] = __ldcg(quants + i);
        for (int g = static_cast<int>(threadIdx.x); g < groups; g += threads) {
            const std::int64_t index = token * from.groups + g;
            const float2 scales = __ldcg(reinterpret_cast<const float2*>(from.scales) + index);
            to.scales[token * to.groups + g] = scales.x;
            to.scaled_sums[token * to.groups + g] = scales.y;
            reinterpret_cast<short2*>(to.half_sums)[token * to.groups + g] =
                __ldcg(reinterpret_cast<const short2*>(from.half_sums) + index);
        }
    }
    if (to.values == nullptr) return;
    for (int i = static_cast<int>(threadIdx.x); i < args.columns; i += threads)
        to.values[token * to.groups * 32 + i] = __ldcg(args.x.values + token * args.x.value_stride + i);
}

/// Adds this token's misses to the layer's; whether all tokens are done, and then how many there are.
__device__ inline bool all_routed(const RouteArgs& args, unsigned& missing) {
    unsigned& total = args.counters.missing[args.layer];
    if (args.tokens == 1) {
        total = missing;
        return true;
    }
    if (missing > 0) atomicAdd(&total, missing);
    __threadfence();
    if (atomicAdd(&args.counters.routed[args.layer], 1u) + 1 != static_cast<unsigned>(args.tokens))
        return false;
    missing = atomicAdd(&total, 0u);
    return true;
}

/// Asks for what a routing reads besides its logits: a layer's table leaves the second-level cache from one
/// step to the next.
__device__ inline void prefetch_tables(const RouteArgs& args) {
    const auto experts = static_cast<unsigned>(args.routing.experts);
    prefetch(reinterpret_cast<const std::uint8_t*>(args.residents), experts * 8, threadIdx.x, blockDim.x);
    if (args.selection_bias == nullptr) return;
    prefetch(reinterpret_cast<const std::uint8_t*>(args.selection_bias), experts * 4, threadIdx.x,
             blockDim.x);
}

/// Routes a token, by one block whose threads all come here. What the block reads may have been written by
/// others of the same kernel.
__device__ inline void route_token(const RouteArgs& args, std::int64_t token, RouteShared& shared) {
    if (warp_index() == 0) {
        choose(args, token, shared);
        publish(args, token, shared);
    }
    __syncthreads();
    const bool timed = threadIdx.x == 0 && shared.missing > 0 && args.counters.times != nullptr;
    const std::uint64_t begin = timed ? nanoseconds_now() : 0;
    if (shared.missing > 0) hand_over(args, token);
    if (shared.missing > 0 || args.tokens > 1) {
        __threadfence_system();
        __syncthreads();
    }
    if (threadIdx.x != 0) return;
    unsigned missing = static_cast<unsigned>(shared.missing);
    if (!all_routed(args, missing)) return;
    if (missing == 0) return;
    args.mailbox.missing[args.layer] = missing;
    __threadfence_system();
    if (timed) atomicAdd(&args.counters.times->posting, nanoseconds_now() - begin);
    *args.mailbox.request = *args.counters.step * kEpochsPerStep + static_cast<unsigned>(args.layer) + 1;
}

}  // namespace coterie::cuda
