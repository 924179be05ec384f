#pragma once

#include "kernels/cuda/device/lanes.cuh"
#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/device/timer.cuh"
#include "kernels/cuda/device/transcendental.cuh"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/moe.h"

/// How a block routes a token (src/kernels/cpu/route.h) and hands it over where experts are missing.
namespace coterie::cuda {

inline constexpr float kSmallestSum = 6.103515625e-5f;

struct alignas(16) RouteShared {
    float probabilities[kMostExperts];
    union {
        float scores[kMostExperts];
        unsigned keys[kMostExperts];  ///< then: the scores as integers of the same order, NaN as 0
    };
    float group_scores[kMostExperts / 2];
    std::int32_t chosen[kMostUsed];
    float weights[kMostUsed];
    std::uint64_t slots[kMostUsed];
    int missing;
};

/// softmax over values[0, n), in place: src/kernels/reference/softmax.cpp. Every warp finds the maximum and
/// the sum for itself.
__device__ inline void soften(float* values, int n) {
    float maximum = -INFINITY;
#pragma unroll 1
    for (int i = lane_index(); i < n; i += 32) maximum = fmaxf(maximum, values[i]);
    maximum = warp_maximum(maximum);
    __syncthreads();
#pragma unroll 1
    for (int i = thread_index(); i < n; i += block_threads())
        values[i] = law_exp(__fsub_rn(values[i], maximum));
    __syncthreads();
    float lane = 0.0f;
#pragma unroll 1
    for (int i = lane_index(); i < n; i += 32) lane = __fadd_rn(lane, values[i]);
    const float sum = fold_lanes(lane);
    __syncthreads();
#pragma unroll 1
    for (int i = thread_index(); i < n; i += block_threads()) values[i] = __fdiv_rn(values[i], sum);
    __syncthreads();
}

__device__ inline float two_best_sum(const float* scores, int count) {
    float first = -INFINITY;
    float second = -INFINITY;
#pragma unroll 1
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

/// By one warp.
__device__ inline void drop_weak_groups(const cpu::Routing& routing, RouteShared& shared) {
    const int groups = static_cast<int>(routing.groups);
    const int size = static_cast<int>(routing.experts) / groups;
#pragma unroll 1
    for (int g = lane_index(); g < groups; g += 32)
        shared.group_scores[g] = two_best_sum(shared.scores + g * size, size);
    __syncwarp();
#pragma unroll 1
    for (int g = lane_index(); g < groups; g += 32) {
        int better = 0;
#pragma unroll 1
        for (int other = 0; other < groups; ++other) {
            const bool tie_lost = shared.group_scores[other] == shared.group_scores[g] && other < g;
            better += shared.group_scores[other] > shared.group_scores[g] || tie_lost;
        }
        if (better < routing.groups_used) continue;
#pragma unroll 1
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

/// How many experts the law takes before `expert`, where no score is NaN: those of larger scores and, of the
/// same, those of lower index. keys: up to a multiple of 4, filled up with 0.
__device__ inline int rank_of(const unsigned* keys, int experts, int expert) {
    const unsigned mine = keys[expert];
    int before = 0;
#pragma unroll 4
    for (int first = 0; first < experts; first += 4) {
        const uint4 others = reinterpret_cast<const uint4*>(keys)[first / 4];
        const unsigned below = first + 3 < expert ? mine - 1 : mine;
        before += (others.x > below) + (others.y > below) + (others.z > below) + (others.w > below);
    }
#pragma unroll 1
    for (int other = expert & ~3; other < expert; ++other) before += keys[other] == mine;
    return before;
}

/// The expert of a rank, where scores may be NaN, by one thread. The law scans from the lowest index that is
/// not taken and moves on to what is larger: where the first score is NaN it stays, and later ones that are
/// NaN never win.
__device__ inline int take_next(const RouteShared& shared, int experts, int rank) {
    const auto taken = [&](int expert) {
        bool found = false;
#pragma unroll 1
        for (int r = 0; r < rank; ++r) found |= shared.chosen[r] == expert;
        return found;
    };
    int best = -1;
#pragma unroll 1
    for (int expert = 0; expert < experts; ++expert) {
        if (taken(expert)) continue;
        const bool larger = best >= 0 && shared.keys[best] != 0 && shared.keys[expert] > shared.keys[best];
        if (best < 0 || larger) best = expert;
    }
    return best;
}

/// What the layer's tables say of the expert with the thread's number. They leave the second-level cache from
/// one step to the next, so they are asked for early.
struct OwnExpert {
    std::uint64_t resident = 0;
    float selection_bias = 0.0f;
};

__device__ inline OwnExpert own_expert(const RouteArgs& args) {
    const int expert = thread_index();
    if (expert >= static_cast<int>(args.routing.experts)) return {};
    return {args.residents[expert], args.selection_bias != nullptr ? args.selection_bias[expert] : 0.0f};
}

__device__ inline void take(const RouteArgs& args, int expert, int rank, const OwnExpert& own,
                            RouteShared& shared) {
    shared.chosen[rank] = expert;
    shared.weights[rank] = shared.probabilities[expert];
    shared.slots[rank] = expert == thread_index() ? own.resident : args.residents[expert];
}

/// By all threads: the experts by rank, the probabilities that weigh them, and where they are.
__device__ inline void choose(const RouteArgs& args, std::int64_t token, const OwnExpert& own,
                              RouteShared& shared) {
    const cpu::Routing& routing = args.routing;
    const int experts = static_cast<int>(routing.experts);
    const int used = static_cast<int>(routing.used);
    const float* logits = args.logits + token * args.logits_stride;
#pragma unroll 1
    for (int i = thread_index(); i < experts; i += block_threads()) {
        const float logit = __ldcg(logits + i);
        shared.probabilities[i] = routing.gating == cpu::Gating::Sigmoid ? law_sigmoid(logit) : logit;
    }
    __syncthreads();
    if (routing.gating == cpu::Gating::Softmax) soften(shared.probabilities, experts);
#pragma unroll 1
    for (int i = thread_index(); i < experts; i += block_threads()) {
        const float p = shared.probabilities[i];
        const auto bias = [&] { return i == thread_index() ? own.selection_bias : args.selection_bias[i]; };
        shared.scores[i] = args.selection_bias != nullptr ? __fadd_rn(p, bias()) : p;
    }
    if (routing.groups > 1) {
        __syncthreads();
        if (warp_index() == 0) drop_weak_groups(routing, shared);
        __syncthreads();
    }
    bool nan = false;
#pragma unroll 1
    for (int i = thread_index(); i < (experts + 3) / 4 * 4; i += block_threads()) {
        shared.keys[i] = i < experts ? ordered(shared.scores[i]) : 0;
        nan |= i < experts && shared.keys[i] == 0;
    }
    if (__syncthreads_or(nan)) {
#pragma unroll 1
        for (int rank = 0; rank < used && thread_index() == 0; ++rank)
            take(args, take_next(shared, experts, rank), rank, own, shared);
    } else {
#pragma unroll 1
        for (int expert = thread_index(); expert < experts; expert += block_threads()) {
            const int rank = rank_of(shared.keys, experts, expert);
            if (rank < used) take(args, expert, rank, own, shared);
        }
    }
    __syncthreads();
    if (routing.gating == cpu::Gating::SoftmaxOfSelected) soften(shared.weights, used);
}

/// The weight of rank `rank`.
__device__ inline float weight_of(const cpu::Routing& routing, const RouteShared& shared, int rank) {
    float weight = shared.weights[rank];
    if (routing.normalise) {
        float sum = 0.0f;
#pragma unroll 4
        for (int r = 0; r < static_cast<int>(routing.used); ++r) sum = __fadd_rn(sum, shared.weights[r]);
        weight = __fdiv_rn(weight, sum < kSmallestSum ? kSmallestSum : sum);
    }
    return __fmul_rn(weight, routing.scale);
}

/// By one warp: writes the choice where the kernels and the host read it, and counts what is missing.
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
        const float weight = weight_of(args.routing, shared, rank);
        slot = shared.slots[rank];
        args.experts[pair] = expert;
        args.weights[pair] = weight;
        args.counters.experts[routed] = expert;
        args.counters.weights[routed] = weight;
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
#pragma unroll 1
        for (int i = static_cast<int>(threadIdx.x); i < 2 * groups; i += threads)
            posted[i] = __ldcg(quants + i);
#pragma unroll 1
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
#pragma unroll 1
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

/// Routes a token, by one block whose threads all come here with their `own_expert`. The logits may have been
/// written by others of the same kernel.
__device__ inline void route_token(const RouteArgs& args, std::int64_t token, const OwnExpert& own,
                                   RouteShared& shared) {
    choose(args, token, own, shared);
    if (warp_index() == 0) publish(args, token, shared);
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
