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

__device__ __forceinline__ int dot_words(uint4 codes, uint4 quants, int sum) {
    sum = __dp4a(static_cast<int>(codes.x), static_cast<int>(quants.x), sum);
    sum = __dp4a(static_cast<int>(codes.y), static_cast<int>(quants.y), sum);
    sum = __dp4a(static_cast<int>(codes.z), static_cast<int>(quants.z), sum);
    return __dp4a(static_cast<int>(codes.w), static_cast<int>(quants.w), sum);
}

/// The same for unsigned codes.
__device__ __forceinline__ int dot_unsigned_words(uint4 codes, uint4 quants, int sum) {
    const auto add = [&](std::uint32_t a, std::uint32_t b) {
        asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
    };
    add(codes.x, quants.x);
    add(codes.y, quants.y);
    add(codes.z, quants.z);
    add(codes.w, quants.w);
    return sum;
}

/// A group's codes, ready for products with several tokens: signed ones, or the type's planes (group.cuh).
template <typename Type>
struct GroupCodes {
    static constexpr bool kHasPlanes = requires { Type::kPlanes; };
    static constexpr int kPlanes = [] {
        if constexpr (kHasPlanes) return Type::kPlanes;
        return 1;
    }();
    uint4 words[kPlanes][2];  ///< of each half

    __device__ __forceinline__ GroupCodes(const std::uint8_t* block, unsigned g) {
#pragma unroll
        for (unsigned half = 0; half < 2; ++half) {
            if constexpr (kHasPlanes) {
#pragma unroll
                for (int p = 0; p < kPlanes; ++p) words[p][half] = Type::plane(block, g, half, p);
            } else {
                words[0][half] = half_words<Type>(block, g, half);
            }
        }
    }
    /// The dot product of halves [first, last] with their quants, whose sum is `quants_sum`.
    __device__ __forceinline__ int dot(unsigned g, int first, int last, const uint4* quants,
                                       int quants_sum) const {
        int sums[kPlanes] = {};
#pragma unroll
        for (int half = first; half <= last; ++half) {
#pragma unroll
            for (int p = 0; p < kPlanes; ++p)
                sums[p] = kHasPlanes ? dot_unsigned_words(words[p][half], quants[half], sums[p])
                                     : dot_words(words[p][half], quants[half], sums[p]);
        }
        if constexpr (kHasPlanes) return Type::sum_of_planes(sums, g, quants_sum);
        return sums[0];
    }
};

/// What a group adds to its accumulator, ready to be handed to the thread that keeps it.
struct Term {
    float sum;         ///< of codes times quants ...
    float factor;      ///< ... and what it is multiplied with
    float second_sum;  ///< the same again, for forms with a second update
    float second_factor;
};

template <Form kForm>
inline constexpr bool kHasSecondUpdate = kForm != Form::Plain&& kForm != Form::HalfScaled;

/// The term of a group with the quants of group `index` of x; the law's expressions are group.cuh's.
template <typename Type>
__device__ __forceinline__ Term term_of(const GroupCodes<Type>& codes, unsigned g, const Scales& s,
                                        const ActivationBuffer& x, unsigned index) {
    constexpr Form kForm = Type::kForm;
    const auto* quants = reinterpret_cast<const uint4*>(x.quants) + 2 * static_cast<std::size_t>(index);
    const float2 scales = reinterpret_cast<const float2*>(x.scales)[index];
    Term term{};
    if constexpr (kForm == Form::TwoScale) {
        return {static_cast<float>(codes.dot(g, 0, 0, quants, 0)), __fmul_rn(s.ds[0], scales.x),
                static_cast<float>(codes.dot(g, 1, 1, quants, 0)), __fmul_rn(s.ds[1], scales.x)};
    }
    short2 sums{};
    if constexpr (kReadsHalfSums<kForm>) sums = reinterpret_cast<const short2*>(x.half_sums)[index];
    int sum = 0;
    if constexpr (kHasHalfScales<kForm>) {
        sum = s.half_scales[0] * codes.dot(g, 0, 0, quants, sums.x) +
              s.half_scales[1] * codes.dot(g, 1, 1, quants, sums.y);
    } else {
        sum = codes.dot(g, 0, 1, quants, 0);
    }
    term.sum = static_cast<float>(sum);
    term.factor = __fmul_rn(s.ds[0], scales.x);
    if constexpr (kForm == Form::Minimum) {
        term.second_sum = scales.y;
        term.second_factor = s.ms;
    }
    if constexpr (kForm == Form::HalfMinima) {
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

/// A thread's group of a round of kThreads groups: what the round adds to the accumulators. The group is the
/// row's `number`th and group `g` of `block`; `end` groups of the round are there.
template <typename Type, int kTokens, int kThreads>
__device__ __forceinline__ void add_round(const std::uint8_t* block, unsigned g, unsigned number,
                                          unsigned end, const ActivationBuffer& x,
                                          const unsigned (&first_groups)[kTokens], float (&acc)[kTokens]) {
    const unsigned thread = threadIdx.x & (kThreads - 1);
    const GroupCodes<Type> codes(block, g);
    const Scales scales = Type::scales(block, g);
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
        const Term term = term_of<Type>(codes, g, scales, x, first_groups[t] + number);
#pragma unroll
        for (unsigned j = 0; j < kThreads / 4; ++j) {
            const Term taken =
                kThreads == 4 ? term
                              : term_from<Type::kForm, kThreads>(term, static_cast<int>(4 * j + thread % 4));
            const float next = add_term<Type::kForm>(taken, acc[t]);
            acc[t] = 4 * j + thread % 4 < end ? next : acc[t];
        }
    }
}

/// What `groups` groups of a row, whole blocks, add to its accumulators; the first of them begins a block at
/// `row`, and its inputs are group first_groups[t] of x for token t.
///
/// `kThreads` neighbouring threads (4, 8 or 16) share a row. Thread t forms the terms of groups t,
/// t + kThreads ... and keeps accumulator t mod 4. Four threads a row keep what they form; more of them hand
/// their terms round, in ascending order of the groups, and shorten the way through long or few rows. All
/// threads of a warp take part, each with a row that can be read. Little is unrolled: a kernel's code is run
/// once for a token, and read from far away each time if a layer's does not fit the instruction caches.
template <typename Type, int kTokens, int kThreads>
__device__ __forceinline__ void add_groups(const std::uint8_t* row, unsigned groups,
                                           const ActivationBuffer& x, const unsigned (&first_groups)[kTokens],
                                           float (&acc)[kTokens]) {
    const unsigned thread = threadIdx.x & (kThreads - 1);
    if constexpr (Type::kGroups % kThreads == 0) {
        constexpr unsigned kRounds = Type::kGroups / kThreads;  // of a block
        constexpr int kBlocks = kTokens == 1 && kRounds == 1 ? 2 : 1;
#pragma unroll kBlocks
        for (unsigned begin = 0; begin < groups; begin += Type::kGroups) {
#pragma unroll
            for (unsigned round = 0; round < kRounds; ++round) {
                const unsigned g = round * kThreads + thread;
                add_round<Type, kTokens, kThreads>(row, g, begin + g, kThreads, x, first_groups, acc);
            }
            row += Type::kBlockBytes;
        }
    } else {
        constexpr int kRounds = kTokens == 1 ? 2 : 1;  // under way at once
#pragma unroll kRounds
        for (unsigned begin = 0; begin < groups; begin += kThreads) {
            const unsigned number = min(begin + thread, groups - 1);
            add_round<Type, kTokens, kThreads>(row + number / Type::kGroups * Type::kBlockBytes,
                                               number % Type::kGroups, number, groups - begin, x,
                                               first_groups, acc);
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
