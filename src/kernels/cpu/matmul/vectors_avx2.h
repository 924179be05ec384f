#pragma once

// The vectors of the AVX2 kernels. The shared kernel headers name only what is defined here; see target.h.

#include <cstddef>
#include <cstdint>
#include <immintrin.h>

#include "kernels/cpu/matmul/unroll.h"

#define COTERIE_ISA avx2
#define COTERIE_KERNEL [[gnu::target("avx2,fma,f16c")]]
#define COTERIE_INLINE [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] inline

namespace coterie::cpu::matmul::avx2 {

using Int = __m256i;
using Float = __m256;

/// Rows of a strip; each owns one 32-bit lane.
inline constexpr int kStripRows = 8;

/// How far ahead of a float row's position memory is fetched.
inline constexpr std::int64_t kFloatPrefetchBytes = 4096;

/// The current position in `kStripRows` rows.
struct Strip {
    const std::byte* base;
    std::int64_t stride;  ///< bytes between rows

    COTERIE_INLINE const std::byte* row(int r) const { return base + r * stride; }
    COTERIE_INLINE Strip at(std::int64_t offset) const { return {base + offset, stride}; }
};

COTERIE_INLINE Int zero() { return _mm256_setzero_si256(); }
COTERIE_INLINE Int every_byte(int value) { return _mm256_set1_epi8(static_cast<char>(value)); }
COTERIE_INLINE Int every_word(int value) { return _mm256_set1_epi16(static_cast<short>(value)); }
COTERIE_INLINE Int every_lane(int value) { return _mm256_set1_epi32(value); }
COTERIE_INLINE Float every_float(float value) { return _mm256_set1_ps(value); }
COTERIE_INLINE Float zero_float() { return _mm256_setzero_ps(); }

COTERIE_INLINE Int bits_and(Int a, Int b) { return _mm256_and_si256(a, b); }
COTERIE_INLINE Int bits_or(Int a, Int b) { return _mm256_or_si256(a, b); }
COTERIE_INLINE Int bits_xor(Int a, Int b) { return _mm256_xor_si256(a, b); }
template <int kBits>
COTERIE_INLINE Int words_left(Int a) {
    return _mm256_slli_epi16(a, kBits);
}
template <int kBits>
COTERIE_INLINE Int words_right(Int a) {
    return _mm256_srli_epi16(a, kBits);
}
template <int kBits>
COTERIE_INLINE Int words_right_signed(Int a) {
    return _mm256_srai_epi16(a, kBits);
}
template <int kBits>
COTERIE_INLINE Int lanes_right(Int a) {
    return _mm256_srli_epi32(a, kBits);
}
template <int kBits>
COTERIE_INLINE Int lanes_left(Int a) {
    return _mm256_slli_epi32(a, kBits);
}
COTERIE_INLINE Int lanes_right(Int a, int bits) { return _mm256_srl_epi32(a, _mm_cvtsi32_si128(bits)); }
COTERIE_INLINE Int smaller_bytes(Int a, Int b) { return _mm256_min_epu8(a, b); }
COTERIE_INLINE Int larger_lanes(Int a, Int b) { return _mm256_max_epi32(a, b); }
/// The lanes that differ from `value`, 0 in the others.
COTERIE_INLINE Int lanes_other_than(Int a, Int value) {
    return _mm256_andnot_si256(_mm256_cmpeq_epi32(a, value), a);
}
/// Negates the bytes of `a` where all bits of `selected` are set in `bits`.
COTERIE_INLINE Int negate_bytes(Int a, Int bits, Int selected) {
    const Int mask = _mm256_cmpeq_epi8(_mm256_and_si256(bits, selected), selected);
    return _mm256_sub_epi8(_mm256_xor_si256(a, mask), mask);
}
COTERIE_INLINE Int add_bytes(Int a, Int b) { return _mm256_add_epi8(a, b); }
COTERIE_INLINE Int subtract_bytes(Int a, Int b) { return _mm256_sub_epi8(a, b); }
COTERIE_INLINE Int add_words(Int a, Int b) { return _mm256_add_epi16(a, b); }
COTERIE_INLINE Int add_lanes(Int a, Int b) { return _mm256_add_epi32(a, b); }
COTERIE_INLINE Int subtract_lanes(Int a, Int b) { return _mm256_sub_epi32(a, b); }
/// The high words of the products of unsigned words.
COTERIE_INLINE Int high_products(Int a, Int b) { return _mm256_mulhi_epu16(a, b); }
/// Per lane: the sum of two products of signed words.
COTERIE_INLINE Int dot_words(Int a, Int b) { return _mm256_madd_epi16(a, b); }

/// Selects bytes of each 16; an index with its top bit set gives 0.
COTERIE_INLINE Int shuffle_bytes(Int a, Int index) { return _mm256_shuffle_epi8(a, index); }
/// The same four byte indices for every lane, counted within the lane; -1 gives 0.
COTERIE_INLINE Int lane_pattern(int b0, int b1, int b2, int b3) {
    const auto lane = [](int b, unsigned step) { return b < 0 ? 0xffu : static_cast<unsigned>(b) + step; };
    const auto pattern = [=](unsigned step) {
        return static_cast<int>(lane(b0, step) | lane(b1, step) << 8 | lane(b2, step) << 16 |
                                lane(b3, step) << 24);
    };
    return _mm256_broadcastsi128_si256(_mm_setr_epi32(pattern(0), pattern(4), pattern(8), pattern(12)));
}
/// A table of 16 bytes for `shuffle_bytes`.
COTERIE_INLINE Int byte_table(const std::int8_t* table) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
}

COTERIE_INLINE Float to_float(Int a) { return _mm256_cvtepi32_ps(a); }
COTERIE_INLINE Float as_float(Int a) { return _mm256_castsi256_ps(a); }
COTERIE_INLINE Int as_int(Float a) { return _mm256_castps_si256(a); }
COTERIE_INLINE Float multiply(Float a, Float b) { return _mm256_mul_ps(a, b); }
COTERIE_INLINE Float add(Float a, Float b) { return _mm256_add_ps(a, b); }
COTERIE_INLINE Float negate(Float a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
/// a * b + c, rounded once.
COTERIE_INLINE Float multiply_add(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }

COTERIE_INLINE Float load(const float* p) { return _mm256_loadu_ps(p); }
COTERIE_INLINE void store(float* p, Float a) { _mm256_storeu_ps(p, a); }
COTERIE_INLINE Float broadcast(const float* p) { return _mm256_broadcast_ss(p); }
/// Keeps a chain of additions as it is written: the compiler would make a tree of it and spill its leaves.
COTERIE_INLINE void keep_order(Int& a) { asm("" : "+x"(a)); }
/// Four bytes, or two words, in every lane.
COTERIE_INLINE Int broadcast_lane(const void* p) {
    int lane;
    __builtin_memcpy(&lane, p, sizeof lane);
    return _mm256_set1_epi32(lane);
}

COTERIE_INLINE void prefetch(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
}

/// Transposes four vectors of 16 bytes of rows {i, i + 4}: out[c] holds bytes 4c .. 4c + 3 of row r in lane
/// r.
COTERIE_INLINE void transpose(Int rows04, Int rows15, Int rows26, Int rows37, Int out[4]) {
    const Int low01 = _mm256_unpacklo_epi32(rows04, rows15);
    const Int high01 = _mm256_unpackhi_epi32(rows04, rows15);
    const Int low23 = _mm256_unpacklo_epi32(rows26, rows37);
    const Int high23 = _mm256_unpackhi_epi32(rows26, rows37);
    out[0] = _mm256_unpacklo_epi64(low01, low23);
    out[1] = _mm256_unpackhi_epi64(low01, low23);
    out[2] = _mm256_unpacklo_epi64(high01, high23);
    out[3] = _mm256_unpackhi_epi64(high01, high23);
}

COTERIE_INLINE __m128i load_16(const std::byte* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

COTERIE_INLINE Int join(__m128i low, __m128i high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/// Four bytes of each row.
COTERIE_INLINE __m128i four_lanes(Strip strip, int r) {
    const __m128i first = _mm_unpacklo_epi32(_mm_loadu_si32(strip.row(r)), _mm_loadu_si32(strip.row(r + 1)));
    const __m128i second =
        _mm_unpacklo_epi32(_mm_loadu_si32(strip.row(r + 2)), _mm_loadu_si32(strip.row(r + 3)));
    return _mm_unpacklo_epi64(first, second);
}
COTERIE_INLINE Int load_lanes(Strip strip) { return join(four_lanes(strip, 0), four_lanes(strip, 4)); }

/// 16 bytes of each row: out[c] holds bytes 4c .. 4c + 3.
COTERIE_INLINE Int two_rows(Strip strip, int r) {
    return join(load_16(strip.row(r)), load_16(strip.row(r + 4)));
}
COTERIE_INLINE void load_columns_16(Strip strip, Int out[4]) {
    transpose(two_rows(strip, 0), two_rows(strip, 1), two_rows(strip, 2), two_rows(strip, 3), out);
}

/// 8 bytes of each row: out[c] holds bytes 4c .. 4c + 3.
COTERIE_INLINE __m128i two_rows_8(Strip strip, int r) {
    return _mm_unpacklo_epi32(_mm_loadu_si64(strip.row(r)), _mm_loadu_si64(strip.row(r + 1)));
}
COTERIE_INLINE void load_columns_8(Strip strip, Int out[2]) {
    const Int rows0145 = join(two_rows_8(strip, 0), two_rows_8(strip, 4));
    const Int rows2367 = join(two_rows_8(strip, 2), two_rows_8(strip, 6));
    out[0] = _mm256_unpacklo_epi64(rows0145, rows2367);
    out[1] = _mm256_unpackhi_epi64(rows0145, rows2367);
}

/// Entry `index` of a table of 8-byte entries for each row: out[0] holds its first four bytes, out[1] the
/// others.
COTERIE_INLINE __m128i two_entries(const std::int8_t* table, std::uint32_t first, std::uint32_t second) {
    const auto* low = reinterpret_cast<const double*>(table + 8 * std::size_t{first});
    const auto* high = reinterpret_cast<const double*>(table + 8 * std::size_t{second});
    return _mm_castpd_si128(_mm_loadh_pd(_mm_load_sd(low), high));
}
COTERIE_INLINE void look_up_8(const std::int8_t* table, Int index, Int out[2]) {
    alignas(32) std::uint32_t i[kStripRows];
    _mm256_store_si256(reinterpret_cast<Int*>(i), index);
    const Float rows0145 = as_float(join(two_entries(table, i[0], i[1]), two_entries(table, i[4], i[5])));
    const Float rows2367 = as_float(join(two_entries(table, i[2], i[3]), two_entries(table, i[6], i[7])));
    out[0] = as_int(_mm256_shuffle_ps(rows0145, rows2367, 0b10001000));
    out[1] = as_int(_mm256_shuffle_ps(rows0145, rows2367, 0b11011101));
}

/// Entry `index` of a table of 4-byte entries for each row.
COTERIE_INLINE __m128i four_entries(const std::int8_t* table, const std::uint32_t* i) {
    const __m128i first = _mm_unpacklo_epi32(_mm_loadu_si32(table + 4 * std::size_t{i[0]}),
                                             _mm_loadu_si32(table + 4 * std::size_t{i[1]}));
    const __m128i second = _mm_unpacklo_epi32(_mm_loadu_si32(table + 4 * std::size_t{i[2]}),
                                              _mm_loadu_si32(table + 4 * std::size_t{i[3]}));
    return _mm_unpacklo_epi64(first, second);
}
COTERIE_INLINE Int look_up_4(const std::int8_t* table, Int index) {
    alignas(32) std::uint32_t i[kStripRows];
    _mm256_store_si256(reinterpret_cast<Int*>(i), index);
    return join(four_entries(table, i), four_entries(table, i + 4));
}

/// The two binary16 numbers in four bytes of each row.
COTERIE_INLINE __m128i four_rows_of_words(Strip strip, int r) {
    const __m128i first = _mm_unpacklo_epi16(_mm_loadu_si32(strip.row(r)), _mm_loadu_si32(strip.row(r + 1)));
    const __m128i second =
        _mm_unpacklo_epi16(_mm_loadu_si32(strip.row(r + 2)), _mm_loadu_si32(strip.row(r + 3)));
    return _mm_unpacklo_epi32(first, second);
}
COTERIE_INLINE void load_two_halves(Strip strip, Float& first, Float& second) {
    const __m128i low = four_rows_of_words(strip, 0);
    const __m128i high = four_rows_of_words(strip, 4);
    first = _mm256_cvtph_ps(_mm_unpacklo_epi64(low, high));
    second = _mm256_cvtph_ps(_mm_unpackhi_epi64(low, high));
}

/// The binary16 numbers in the low words of the lanes.
COTERIE_INLINE Float halves_to_float(Int lanes) {
    const Int packed = _mm256_packus_epi32(lanes, lanes);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0b1000)));
}

/// Neighbouring values of one row, as binary32.
COTERIE_INLINE Float load_floats(const std::byte* p) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(p));
}
COTERIE_INLINE Float load_halves(const std::byte* p) { return _mm256_cvtph_ps(load_16(p)); }
COTERIE_INLINE Float load_brain_floats(const std::byte* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_16(p)), 16));
}

/// The law's sum of 32 lanes: the upper half is added to the lower one until one lane is left.
COTERIE_INLINE float sum_of_32_lanes(const Float lanes[4]) {
    const Float eight = _mm256_add_ps(_mm256_add_ps(lanes[0], lanes[2]), _mm256_add_ps(lanes[1], lanes[3]));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

}  // namespace coterie::cpu::matmul::avx2
