#pragma once

// The vector type of the ops for AVX-512; see simd_avx2.h, which explains each name. Included inside a target
// region (target_avx512_begin.h), after <immintrin.h>.
namespace coterie::cpu::avx512 {
namespace {

struct Float16 {
    __m512 v;
};
using Vector = Float16;

struct Mask16 {
    __mmask16 v;
};

inline constexpr int kWidth = 16;
inline constexpr int kLaneVectors = 2;

inline Float16 zero() { return {_mm512_setzero_ps()}; }
inline Float16 broadcast(float x) { return {_mm512_set1_ps(x)}; }
inline Float16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, Float16 a) { _mm512_storeu_ps(p, a.v); }

inline Float16 operator+(Float16 a, Float16 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Float16 operator-(Float16 a, Float16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Float16 operator*(Float16 a, Float16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Float16 operator/(Float16 a, Float16 b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Float16 operator-(Float16 a) { return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))}; }
inline Float16 fma(Float16 a, Float16 b, Float16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Float16 absolute(Float16 a) { return {_mm512_andnot_ps(_mm512_set1_ps(-0.0f), a.v)}; }

inline Float16 maximum(Float16 a, Float16 b) { return {_mm512_max_ps(a.v, b.v)}; }
inline Float16 minimum(Float16 a, Float16 b) { return {_mm512_min_ps(a.v, b.v)}; }

inline Mask16 operator<(Float16 a, Float16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
inline Mask16 operator>(Float16 a, Float16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
inline Mask16 is_nan(Float16 a) { return {_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q)}; }
inline Float16 select(Mask16 mask, Float16 a, Float16 b) { return {_mm512_mask_blend_ps(mask.v, b.v, a.v)}; }

/// One bit for each of the first `count` elements, 0 <= count <= 15.
inline __mmask16 first_elements(std::int64_t count) { return static_cast<__mmask16>((1u << count) - 1u); }

inline Float16 load_first(const float* p, std::int64_t remaining) {
    if (remaining >= kWidth) return load(p);
    if (remaining <= 0) return zero();
    return {_mm512_maskz_loadu_ps(first_elements(remaining), p)};
}

inline void store_first(float* p, Float16 a, std::int64_t remaining) {
    if (remaining >= kWidth) return store(p, a);
    if (remaining > 0) _mm512_mask_storeu_ps(p, first_elements(remaining), a.v);
}

inline Float16 add_exponent(Float16 p, Float16 t) {
    const __m512i shifted = _mm512_slli_epi32(_mm512_castps_si512(t.v), 23);
    return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p.v), shifted))};
}

/// Eight values, each twice.
inline Float16 load_twice(const float* p) {
    const __m512i order = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return {_mm512_permutexvar_ps(order, _mm512_castps256_ps512(_mm256_loadu_ps(p)))};
}

inline Float16 swap_neighbours(Float16 a) { return {_mm512_permute_ps(a.v, 0xb1)}; }

inline Float16 fma_alternating(Float16 a, Float16 b, Float16 c) {
    return {_mm512_fmaddsub_ps(a.v, b.v, c.v)};
}

inline Float16 load_half(const std::byte* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline void store_half(std::byte* p, Float16 a) {
    const __m256i halves = _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), halves);
}

inline Float16 load_int8(const std::byte* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}
inline void store_int8(std::byte* p, Float16 a) {
    const __m512i integers = _mm512_cvtps_epi32(a.v);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(integers));
}

inline Float16 maximum_bits(Float16 a, Float16 b) {
    const __m512i larger = _mm512_max_epi32(_mm512_castps_si512(a.v), _mm512_castps_si512(b.v));
    return {_mm512_castsi512_ps(larger)};
}

inline __m256 fold_to_eight(const Float16 lanes[kLaneVectors]) {
    const __m512 sixteen = _mm512_add_ps(lanes[0].v, lanes[1].v);
    const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(sixteen), 1));
    return _mm256_add_ps(_mm512_castps512_ps256(sixteen), high);
}

}  // namespace
}  // namespace coterie::cpu::avx512
