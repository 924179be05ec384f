#include "kernels/cpu/matmul/vectors_avx2.h"
#include "kernels/cpu/quantise_activation_simd.h"

namespace coterie::cpu::matmul::avx2 {
namespace {

inline constexpr int kVectors = 4;  ///< of 8 values in a group
inline constexpr std::int32_t kInfinityBits = 0x7f800000;
inline constexpr float kSmallestMaximum = 1e-35f;

/// The bits of max |x|: as integers, magnitudes order like the numbers, with infinity and then NaN on top.
COTERIE_INLINE std::int32_t maximum_bits(const Float x[kVectors]) {
    const Int magnitude = every_lane(0x7fffffff);
    Int eight = zero();
    for (int i = 0; i < kVectors; ++i) eight = _mm256_max_epi32(eight, bits_and(as_int(x[i]), magnitude));
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b01001110));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b10110001));
    return _mm_cvtsi128_si32(four);
}

/// 32 quants in order. The default rounding mode of the conversion is to nearest even.
COTERIE_INLINE Int round_to_bytes(const Float x[kVectors], Float inverse) {
    const Int low = _mm256_packs_epi32(_mm256_cvtps_epi32(multiply(x[0], inverse)),
                                       _mm256_cvtps_epi32(multiply(x[1], inverse)));
    const Int high = _mm256_packs_epi32(_mm256_cvtps_epi32(multiply(x[2], inverse)),
                                        _mm256_cvtps_epi32(multiply(x[3], inverse)));
    // The packs work on 128-bit halves and leave the eight groups of four in the order 0 2 4 6 1 3 5 7.
    return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high),
                                       _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/// The sums of the first and the last 16 quants, as the two words of an int.
COTERIE_INLINE std::int32_t sums_of_halves(Int quants) {
    const Int words = _mm256_maddubs_epi16(every_byte(1), quants);
    const Int lanes = dot_words(words, every_word(1));
    const __m128i pairs = _mm_hadd_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
    const __m128i halves = _mm_hadd_epi32(pairs, pairs);
    return _mm_cvtsi128_si32(_mm_packs_epi32(halves, halves));
}

COTERIE_INLINE void quantise_group(const float* values, std::int64_t g, const QuantisedActivation& out) {
    Float x[kVectors];
    for (int i = 0; i < kVectors; ++i) x[i] = load(values + 8 * i);
    const std::int32_t bits = maximum_bits(x);
    float maximum;
    __builtin_memcpy(&maximum, &bits, sizeof maximum);
    Int quants = zero();
    float scale = 0.0f;
    if (bits >= kInfinityBits) {
        scale = __builtin_nanf("");
    } else if (maximum >= kSmallestMaximum) {
        scale = maximum / 127.0f;
        quants = round_to_bytes(x, every_float(127.0f / maximum));
    }
    const std::int32_t halves = sums_of_halves(quants);
    _mm256_storeu_si256(reinterpret_cast<Int*>(out.quants + g * kGroupValues), quants);
    __builtin_memcpy(out.half_sums + 2 * g, &halves, sizeof halves);
    out.scales[g] = scale;
    out.scaled_sums[g] = scale * static_cast<float>(out.half_sums[2 * g] + out.half_sums[2 * g + 1]);
}

}  // namespace

COTERIE_KERNEL void quantise_activation(const float* values, std::int64_t columns,
                                        const QuantisedActivation& out) {
    const std::int64_t whole_groups = columns / kGroupValues;
    for (std::int64_t g = 0; g < whole_groups; ++g) quantise_group(values + g * kGroupValues, g, out);
    const std::int64_t rest = columns % kGroupValues;
    if (rest == 0) return;
    float last[kGroupValues] = {};
    __builtin_memcpy(last, values + whole_groups * kGroupValues,
                     static_cast<std::size_t>(rest) * sizeof(float));
    quantise_group(last, whole_groups, out);
}

}  // namespace coterie::cpu::matmul::avx2
