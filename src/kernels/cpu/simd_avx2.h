#pragma once

// The vector type of the ops for AVX2. Included inside a target region (target_avx2_begin.h), after
// <immintrin.h>. simd_avx512.h offers the same names, and the ops are written once on them.
namespace coterie::cpu::avx2 {
namespace {

struct Float8 {
    __m256 v;
};
using Vector = Float8;

/// Result of a comparison.
struct Mask8 {
    __m256 v;
};

inline constexpr int kWidth = 8;
inline constexpr int kLaneVectors = 4;  ///< vectors that hold the 32 lanes of a sum

inline Float8 zero() { return {_mm256_setzero_ps()}; }
inline Float8 broadcast(float x) { return {_mm256_set1_ps(x)}; }
inline Float8 load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline void store(float* p, Float8 a) { _mm256_storeu_ps(p, a.v); }

inline Float8 operator+(Float8 a, Float8 b) { return {_mm256_add_ps(a.v, b.v)}; }
inline Float8 operator-(Float8 a, Float8 b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline Float8 operator*(Float8 a, Float8 b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline Float8 operator/(Float8 a, Float8 b) { return {_mm256_div_ps(a.v, b.v)}; }
inline Float8 operator-(Float8 a) { return {_mm256_xor_ps(a.v, _mm256_set1_ps(-0.0f))}; }
inline Float8 fma(Float8 a, Float8 b, Float8 c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
inline Float8 absolute(Float8 a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }

/// a > b ? a : b, so b where either is NaN.
inline Float8 maximum(Float8 a, Float8 b) { return {_mm256_max_ps(a.v, b.v)}; }
/// a < b ? a : b
inline Float8 minimum(Float8 a, Float8 b) { return {_mm256_min_ps(a.v, b.v)}; }

inline Mask8 operator<(Float8 a, Float8 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
inline Mask8 operator>(Float8 a, Float8 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ)}; }
inline Mask8 is_nan(Float8 a) { return {_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q)}; }
/// mask ? a : b
inline Float8 select(Mask8 mask, Float8 a, Float8 b) { return {_mm256_blendv_ps(b.v, a.v, mask.v)}; }

/// All bits set in the first `count` elements, 0 <= count <= 8.
inline __m256i first_elements(std::int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/// The values of index < remaining, +0 beyond; nothing beyond is read. `remaining` may have any value.
inline Float8 load_first(const float* p, std::int64_t remaining) {
    if (remaining >= kWidth) return load(p);
    if (remaining <= 0) return zero();
    return {_mm256_maskload_ps(p, first_elements(remaining))};
}

/// Writes the elements of index < remaining and nothing beyond.
inline void store_first(float* p, Float8 a, std::int64_t remaining) {
    if (remaining >= kWidth) return store(p, a);
    if (remaining > 0) _mm256_maskstore_ps(p, first_elements(remaining), a.v);
}

/// bits(p) + (bits(t) << 23): the last step of exp.
inline Float8 add_exponent(Float8 p, Float8 t) {
    const __m256i shifted = _mm256_slli_epi32(_mm256_castps_si256(t.v), 23);
    return {_mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p.v), shifted))};
}

/// Four values, each twice.
inline Float8 load_twice(const float* p) {
    const __m256 values = _mm256_castps128_ps256(_mm_loadu_ps(p));
    return {_mm256_permutevar8x32_ps(values, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3))};
}

/// (0, 1, 2, 3 ...) to (1, 0, 3, 2 ...).
inline Float8 swap_neighbours(Float8 a) { return {_mm256_permute_ps(a.v, 0xb1)}; }

/// fma(a, b, -c) in even elements, fma(a, b, c) in odd ones.
inline Float8 fma_alternating(Float8 a, Float8 b, Float8 c) { return {_mm256_fmaddsub_ps(a.v, b.v, c.v)}; }

inline Float8 load_half(const std::byte* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline void store_half(std::byte* p, Float8 a) {
    const __m128i halves = _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), halves);
}

inline Float8 load_int8(const std::byte* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))};
}
/// Rounds to nearest even; the values lie in -128..127.
inline void store_int8(std::byte* p, Float8 a) {
    const __m256i integers = _mm256_cvtps_epi32(a.v);
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(integers), _mm256_extracti128_si256(integers, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
}

/// The larger bit pattern, for values that are not negative; NaN counts as largest.
inline Float8 maximum_bits(Float8 a, Float8 b) {
    return {_mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(a.v), _mm256_castps_si256(b.v)))};
}

/// Folds 32 lanes to 8: lane[l] += lane[l + 16], then lane[l] += lane[l + 8].
inline __m256 fold_to_eight(const Float8 lanes[kLaneVectors]) {
    return ((lanes[0] + lanes[2]) + (lanes[1] + lanes[3])).v;
}

}  // namespace
}  // namespace coterie::cpu::avx2
