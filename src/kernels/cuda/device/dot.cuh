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

/// Two neighbouring groups, which a pair of threads reads together: each thread one half of both.
struct GroupPair {
    const std::uint8_t* blocks[2];
    unsigned groups[2];   ///< in their blocks
    unsigned numbers[2];  ///< in the row
};

template <typename Type>
__device__ __forceinline__ GroupPair group_pair(const std::uint8_t* row, unsigned pair, unsigned groups) {
    GroupPair result;
#pragma unroll
    for (unsigned i = 0; i < 2; ++i) {
        // Blocks of several groups have an even number of them, so there the second is never past the end.
        const unsigned g = Type::kGroups > 1 ? 2 * pair + i : min(2 * pair + i, groups - 1);
        result.numbers[i] = g;
        result.groups[i] = Type::kGroups > 1 ? 2 * pair % Type::kGroups + i : 0;
        result.blocks[i] = row + (Type::kGroups > 1 ? 2 * pair : g) / Type::kGroups * Type::kBlockBytes;
    }
    return result;
}

/// One token's row, seen from the half of groups that a thread reads.
struct TokenRow {
    const std::int8_t* quants;  ///< of the half of group 0
    unsigned first_group;       ///< index of group 0 in the arrays of scales
};

/// `kThreads` neighbouring threads (8, 16 or 32) form one row's products with tokens [first, first + kTokens)
/// of x.
///
/// Thread t answers for groups t, t + kThreads ... Its neighbour t ^ 1 and it read a half of both their
/// groups and swap the other's integer sum, so every byte is read once and every scale decoded once. Then the
/// terms go to accumulator g mod 4 in ascending order of g; thread t keeps accumulator t mod 4. All threads
/// of a warp take part, each with a row that can be read. Reads of kAhead rounds stand before the first
/// shuffle, which no read may pass.
template <typename Type, int kTokens, int kThreads>
__device__ __forceinline__ void row_products(const std::uint8_t* row, unsigned groups,
                                             const ActivationBuffer& x, unsigned first, unsigned tokens,
                                             float (&out)[kTokens]) {
    constexpr int kAhead = kTokens <= 4 ? 2 : 1;
    const unsigned thread = threadIdx.x & (kThreads - 1);
    const unsigned half = thread & 1;
    const unsigned last_pair = (groups - 1) / 2;
    TokenRow rows[kTokens];
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
        const unsigned token = first + min(static_cast<unsigned>(t), tokens - 1);
        rows[t].first_group = token * static_cast<unsigned>(x.groups);
        rows[t].quants = x.quants + static_cast<std::size_t>(rows[t].first_group) * 32 + 16 * half;
    }
    float acc[kTokens] = {};
    for (unsigned begin = 0; begin < groups; begin += kAhead * kThreads) {
        int sums[kAhead][kTokens][2];
        Scales scales[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const unsigned pair =
                min((begin + i * kThreads + thread) / 2, last_pair);  // past the end: not used
            const GroupPair both = group_pair<Type>(row, pair, groups);
            const uint4 codes[2] = {half_words<Type>(both.blocks[0], both.groups[0], half),
                                    half_words<Type>(both.blocks[1], both.groups[1], half)};
            scales[i] = Type::kGroups > 1 ? Type::scales(both.blocks[0], both.groups[0] + half)
                                          : Type::scales(half ? both.blocks[1] : both.blocks[0], 0);
#pragma unroll
            for (int t = 0; t < kTokens; ++t) {
#pragma unroll
                for (int k = 0; k < 2; ++k) {
                    const uint4 quants =
                        *reinterpret_cast<const uint4*>(rows[t].quants + both.numbers[k] * 32);
                    sums[i][t][k] = dot_words(codes[k], quants);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const unsigned round = begin + i * kThreads;
            if (round >= groups) break;
            const unsigned g = min(round + thread, groups - 1);
#pragma unroll
            for (int t = 0; t < kTokens; ++t) {
                const int mine = half ? sums[i][t][1] : sums[i][t][0];
                const int other = __shfl_xor_sync(kFullWarp, half ? sums[i][t][0] : sums[i][t][1], 1);
                const Term term = term_of<Type::kForm>(half ? other : mine, half ? mine : other, scales[i], x,
                                                       rows[t].first_group + g);
#pragma unroll
                for (unsigned j = 0; j < kThreads / 4; ++j) {
                    const Term taken =
                        term_from<Type::kForm, kThreads>(term, static_cast<int>(4 * j + thread % 4));
                    const float next = add_term<Type::kForm>(taken, acc[t]);
                    acc[t] = round + 4 * j + thread % 4 < groups ? next : acc[t];
                }
            }
        }
    }
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
        float total = 0.0f;
#pragma unroll
        for (int a = 0; a < 4; ++a) total = __fadd_rn(total, __shfl_sync(kFullWarp, acc[t], a, kThreads));
        out[t] = total;
    }
}

}  // namespace coterie::cuda
