#pragma once

#include <cstdint>

#include "kernels/cuda/activations.h"
#include "kernels/cuda/device/group.cuh"
#include "kernels/cuda/device/lanes.cuh"

/// The canonical dot product of one row with the rows of a few tokens.
namespace coterie::cuda {

/// Words 4 half .. 4 half + 3 of a group, in one load where the type knows how.
template <typename Type>
__device__ __forceinline__ uint4 half_words(const std::uint8_t* block, unsigned g, unsigned half) {
    if constexpr (requires { Type::half_words(block, g, half); }) {
        return Type::half_words(block, g, half);
    } else {
        return {Type::word(block, g, 4 * half), Type::word(block, g, 4 * half + 1),
                Type::word(block, g, 4 * half + 2), Type::word(block, g, 4 * half + 3)};
    }
}

__device__ __forceinline__ int dot_words(uint4 codes, uint4 quants) {
    int sum = __dp4a(static_cast<int>(codes.x), static_cast<int>(quants.x), 0);
    sum = __dp4a(static_cast<int>(codes.y), static_cast<int>(quants.y), sum);
    sum = __dp4a(static_cast<int>(codes.z), static_cast<int>(quants.z), sum);
    return __dp4a(static_cast<int>(codes.w), static_cast<int>(quants.w), sum);
}

/// What a group adds to its accumulator, ready to be handed to the thread that keeps it.
struct Term {
    float sum;         ///< of codes times quants ...
    float factor;      ///< ... and what it is multiplied with
    float second_sum;  ///< the same again, for forms with a second update
    float second_factor;
};

template <Form kForm>
inline constexpr bool kHasSecondUpdate = kForm != Form::Plain&& kForm != Form::HalfScaled;

/// The term of a group whose halves have the integer sums `first` and `second`; the law's expressions are
/// group.cuh's.
template <Form kForm>
__device__ __forceinline__ Term term_of(int first, int second, const Scales& s, const ActivationBuffer& x,
                                        unsigned index) {
    const float2 scales = reinterpret_cast<const float2*>(x.scales)[index];
    Term term{};
    if constexpr (kForm == Form::TwoScale) {
        return {static_cast<float>(first), __fmul_rn(s.ds[0], scales.x), static_cast<float>(second),
                __fmul_rn(s.ds[1], scales.x)};
    }
    int sum = first + second;
    if constexpr (kHasHalfScales<kForm>) sum = s.half_scales[0] * first + s.half_scales[1] * second;
    term.sum = static_cast<float>(sum);
    term.factor = __fmul_rn(s.ds[0], scales.x);
    if constexpr (kForm == Form::Minimum) {
        term.second_sum = scales.y;
        term.second_factor = s.ms;
    }
    if constexpr (kForm == Form::HalfMinima) {
        const short2 sums = reinterpret_cast<const short2*>(x.half_sums)[index];
        term.second_sum = static_cast<float>(s.half_minima[0] * sums.x + s.half_minima[1] * sums.y);
        term.second_factor = __fmul_rn(s.ms, scales.x);
    }
    return term;
}

template <Form kForm>
__device__ __forceinline__ float add_term(const Term& term, float acc) {
    acc = __fmaf_rn(term.sum, term.factor, acc);
    if constexpr (kHasSecondUpdate<kForm>) acc = __fmaf_rn(term.second_sum, term.second_factor, acc);
    return acc;
}

/// The term of thread `thread` among `kThreads` neighbours.
template <Form kForm, int kThreads>
__device__ __forceinline__ Term term_from(const Term& term, int thread) {
    const auto from = [=](float value) { return __shfl_sync(kFullWarp, value, thread, kThreads); };
    Term taken{from(term.sum), from(term.factor), 0.0f, 0.0f};
    if constexpr (kHasSecondUpdate<kForm>) {
        taken.second_sum = from(term.second_sum);
        taken.second_factor = from(term.second_factor);
    }
    return taken;
}

/// What `groups` groups of a row add to its accumulators; the first of them begins a block at `row`, and its
/// inputs are group first_groups[t] of x for token t.
///
/// `kThreads` neighbouring threads (4, 8 or 16) share a row. Thread t forms the terms of groups t,
/// t + kThreads ... and keeps accumulator t mod 4. Four threads a row keep what they form; more of them hand
/// their terms round, in ascending order of the groups, and shorten the way through long or few rows. All
/// threads of a warp take part, each with a row that can be read.
template <typename Type, int kTokens, int kThreads>
__device__ __forceinline__ void add_groups(const std::uint8_t* row, unsigned groups,
                                           const ActivationBuffer& x, const unsigned (&first_groups)[kTokens],
                                           float (&acc)[kTokens]) {
    constexpr int kRounds = kTokens == 1 ? 2 : 1;           // under way at once
    constexpr bool kWhole = Type::kGroups % kThreads == 0;  // no round is short
    const unsigned thread = threadIdx.x & (kThreads - 1);
#pragma unroll kRounds
    for (unsigned begin = 0; begin < groups; begin += kThreads) {
        const unsigned g = kWhole ? begin + thread : min(begin + thread, groups - 1);
        const std::uint8_t* block = row + g / Type::kGroups * Type::kBlockBytes;
        const uint4 codes[2] = {half_words<Type>(block, g % Type::kGroups, 0),
                                half_words<Type>(block, g % Type::kGroups, 1)};
        const Scales scales = Type::scales(block, g % Type::kGroups);
#pragma unroll
        for (int t = 0; t < kTokens; ++t) {
            const unsigned index = first_groups[t] + g;
            const auto* quants =
                reinterpret_cast<const uint4*>(x.quants) + 2 * static_cast<std::size_t>(index);
            const Term term = term_of<Type::kForm>(dot_words(codes[0], quants[0]),
                                                   dot_words(codes[1], quants[1]), scales, x, index);
#pragma unroll
            for (unsigned j = 0; j < kThreads / 4; ++j) {
                const Term taken = kThreads == 4 ? term
                                                 : term_from<Type::kForm, kThreads>(
                                                       term, static_cast<int>(4 * j + thread % 4));
                const float next = add_term<Type::kForm>(taken, acc[t]);
                acc[t] = kWhole || begin + 4 * j + thread % 4 < groups ? next : acc[t];
            }
        }
    }
}

/// A row's product, for all of its threads.
template <int kThreads>
__device__ __forceinline__ float add_accumulators(float acc) {
    float total = 0.0f;
#pragma unroll
    for (int a = 0; a < 4; ++a) total = __fadd_rn(total, __shfl_sync(kFullWarp, acc, a, kThreads));
    return total;
}

/// The products of a row with tokens [first, first + kTokens) of x, of which `tokens` are there.
template <typename Type, int kTokens, int kThreads>
__device__ __forceinline__ void row_products(const std::uint8_t* row, unsigned groups,
                                             const ActivationBuffer& x, unsigned first, unsigned tokens,
                                             float (&out)[kTokens]) {
    unsigned first_groups[kTokens];
#pragma unroll
    for (int t = 0; t < kTokens; ++t)
        first_groups[t] =
            (first + min(static_cast<unsigned>(t), tokens - 1)) * static_cast<unsigned>(x.groups);
    float acc[kTokens] = {};
    add_groups<Type, kTokens, kThreads>(row, groups, x, first_groups, acc);
#pragma unroll
    for (int t = 0; t < kTokens; ++t) out[t] = add_accumulators<kThreads>(acc[t]);
}

}  // namespace coterie::cuda
