#pragma once

// AVX2 code of the reduction-order study that follows no order: for each type the integer sums and scales of
// a block, with one lane per row and with one row at a time.

#include <immintrin.h>

#include "reduction_order_cpu.h"

#define AVX2 __attribute__((target("avx2,fma,f16c")))
#define AVX2_INLINE __attribute__((target("avx2,fma,f16c"), always_inline)) static inline

namespace coterie::lab::avx2 {

AVX2_INLINE __m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
AVX2_INLINE __m128i load_16(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
AVX2_INLINE __m256i broadcast_word(const void* p) {
    return _mm256_set1_epi32(static_cast<int>(load_word(p)));
}
AVX2_INLINE __m256i low_nibbles(__m256i v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
AVX2_INLINE __m256i high_nibbles(__m256i v) { return low_nibbles(_mm256_srli_epi16(v, 4)); }
AVX2_INLINE __m256i sum_pairs(__m256i v) { return _mm256_madd_epi16(v, _mm256_set1_epi16(1)); }

/// 8 rows x 16 bytes -> 4 vectors whose lane r holds bytes 4j .. 4j+3 of row r.
AVX2_INLINE void transpose_16_bytes(const std::uint8_t* p, std::size_t stride, __m256i out[4]) {
    __m256i rows[4];
    for (int r = 0; r < 4; ++r)
        rows[r] = _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(p + r * stride)),
                                          load_16(p + (r + 4) * stride), 1);
    const __m256i a = _mm256_unpacklo_epi32(rows[0], rows[1]);
    const __m256i b = _mm256_unpacklo_epi32(rows[2], rows[3]);
    const __m256i c = _mm256_unpackhi_epi32(rows[0], rows[1]);
    const __m256i d = _mm256_unpackhi_epi32(rows[2], rows[3]);
    out[0] = _mm256_unpacklo_epi64(a, b);
    out[1] = _mm256_unpackhi_epi64(a, b);
    out[2] = _mm256_unpacklo_epi64(c, d);
    out[3] = _mm256_unpackhi_epi64(c, d);
}

/// The low 16 bits of each 32-bit lane, as half precision.
AVX2_INLINE __m256 halves_to_floats(__m256i lanes) {
    const __m256i pack = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                          0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(lanes, pack), 0x08);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
}

AVX2_INLINE __m256 byte_to_float(__m256i bytes, int index) {
    return _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(bytes, 8 * index), _mm256_set1_epi32(255)));
}

/// a[i] + neighbours of two vectors: three of these levels fold 8 vectors of 8 partial sums into one vector.
AVX2_INLINE __m256i fold_pair(__m256i a, __m256i b) {
    return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}
AVX2_INLINE __m256i fold_quad(__m256i a, __m256i b) {
    return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}
AVX2_INLINE __m256i fold(const __m256i p[8]) {
    const __m256i low = fold_quad(fold_pair(p[0], p[1]), fold_pair(p[2], p[3]));
    const __m256i high = fold_quad(fold_pair(p[4], p[5]), fold_pair(p[6], p[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20),
                            _mm256_permute2x128_si256(low, high, 0x31));
}

/// One block of 8 rows: lane r of vector k belongs to group k of row r.
struct Panel {
    __m256i sums[8];
    __m256 ds[8], ms[8];
};

/// One block of one row: lane k belongs to group k; the group's sum is lane k of fold(partial) - correction.
struct Block {
    __m256i partial[8], correction;
    __m256 ds, ms;
};

struct Q4K {
    static constexpr Type kType = Type::Q4_K;

    AVX2_INLINE void read_panel(const std::uint8_t* p, std::size_t stride, const Activation& x, int b,
                                Panel& out) {
        __m256i head[4];
        transpose_16_bytes(p, stride, head);
        const __m256 d = halves_to_floats(head[0]);
        const __m256 negative_dmin = -halves_to_floats(_mm256_srli_epi32(head[0], 16));
        const __m256i low6 = _mm256_set1_epi8(63);
        const __m256i top2 = _mm256_set1_epi8(48);
        const __m256i scales[2] = {
            _mm256_and_si256(head[1], low6),
            _mm256_or_si256(low_nibbles(head[3]), _mm256_and_si256(_mm256_srli_epi32(head[1], 2), top2))};
        const __m256i minima[2] = {
            _mm256_and_si256(head[2], low6),
            _mm256_or_si256(high_nibbles(head[3]), _mm256_and_si256(_mm256_srli_epi32(head[2], 2), top2))};
        for (int k = 0; k < 8; ++k) {
            out.ds[k] = d * byte_to_float(scales[k / 4], k % 4);
            out.ms[k] = negative_dmin * byte_to_float(minima[k / 4], k % 4);
        }
        for (int i = 0; i < 4; ++i) {
            const std::int8_t* q = x.quants.data() + 256 * b + 64 * i;
            __m256i low = _mm256_setzero_si256();
            __m256i high = _mm256_setzero_si256();
            for (int part = 0; part < 2; ++part) {
                __m256i codes[4];
                transpose_16_bytes(p + 16 + 32 * i + 16 * part, stride, codes);
                for (int j = 0; j < 4; ++j, q += 4) {  // 8 * 2 * 15 * 127 = 30480 fits 16 bits
                    low =
                        _mm256_add_epi16(low, _mm256_maddubs_epi16(low_nibbles(codes[j]), broadcast_word(q)));
                    high = _mm256_add_epi16(
                        high, _mm256_maddubs_epi16(high_nibbles(codes[j]), broadcast_word(q + 32)));
                }
            }
            out.sums[2 * i] = sum_pairs(low);
            out.sums[2 * i + 1] = sum_pairs(high);
        }
    }

    AVX2_INLINE void read_block(const std::uint8_t* p, const Activation& x, int b, Block& out) {
        const std::int8_t* q = x.quants.data() + 256 * b;
        for (int i = 0; i < 4; ++i) {
            const __m256i codes = load(p + 16 + 32 * i);
            out.partial[2 * i] = sum_pairs(_mm256_maddubs_epi16(low_nibbles(codes), load(q + 64 * i)));
            out.partial[2 * i + 1] =
                sum_pairs(_mm256_maddubs_epi16(high_nibbles(codes), load(q + 64 * i + 32)));
        }
        const PackedScales packed = unpack_q4_k_scales(p);
        const __m128 factors = _mm_cvtph_ps(_mm_cvtsi32_si128(static_cast<int>(load_word(p))));
        const __m256i scales = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(packed.scales)));
        const __m256i minima = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(packed.minima)));
        out.ds = _mm256_broadcastss_ps(factors) * _mm256_cvtepi32_ps(scales);
        out.ms = -_mm256_broadcastss_ps(_mm_movehdup_ps(factors)) * _mm256_cvtepi32_ps(minima);
    }
};

struct Q6K {
    static constexpr Type kType = Type::Q6_K;

    /// Bytes `first` and `second` of each lane as two signed 16-bit numbers.
    AVX2_INLINE __m256i scale_pair(__m256i scales, int first, int second) {
        const int pattern = 0x80 | first << 8 | 0x80 << 16 | second << 24;
        const __m256i lane_offsets = _mm256_setr_epi32(0, 0x04000400, 0x08000800, 0x0c000c00,  //
                                                       0, 0x04000400, 0x08000800, 0x0c000c00);
        return _mm256_srai_epi16(
            _mm256_shuffle_epi8(scales, _mm256_or_si256(_mm256_set1_epi32(pattern), lane_offsets)), 8);
    }

    AVX2_INLINE void codes_of(__m256i a, __m256i b, __m256i high, __m256i out[4]) {
        const __m256i top2 = _mm256_set1_epi8(48);
        out[0] = _mm256_or_si256(low_nibbles(a), _mm256_and_si256(_mm256_slli_epi16(high, 4), top2));
        out[1] = _mm256_or_si256(low_nibbles(b), _mm256_and_si256(_mm256_slli_epi16(high, 2), top2));
        out[2] = _mm256_or_si256(high_nibbles(a), _mm256_and_si256(high, top2));
        out[3] = _mm256_or_si256(high_nibbles(b), _mm256_and_si256(_mm256_srli_epi16(high, 2), top2));
    }

    AVX2_INLINE void read_panel(const std::uint8_t* p, std::size_t stride, const Activation& x, int b,
                                Panel& out) {
        __m256i scales[4];
        transpose_16_bytes(p + 192, stride, scales);
        alignas(16) std::uint16_t factors[8];
        for (int r = 0; r < 8; ++r) std::memcpy(factors + r, p + 208 + r * stride, 2);
        const __m256 d = _mm256_cvtph_ps(load_16(factors));
        for (int k = 0; k < 8; ++k) {  // codes are stored with an offset of 32
            const __m256i half_sums = broadcast_word(x.half_sums.data() + 2 * (8 * b + k));
            const __m256i pair = scale_pair(scales[k / 2], 2 * (k % 2), 2 * (k % 2) + 1);
            out.sums[k] = _mm256_slli_epi32(_mm256_madd_epi16(pair, half_sums), 5);
            out.sums[k] = _mm256_sub_epi32(_mm256_setzero_si256(), out.sums[k]);
            out.ds[k] = d;
        }
        for (int half = 0; half < 2; ++half)
            for (int part = 0; part < 2; ++part)
                add_half_groups(p, stride, x, b, half, part, scales, out.sums);
    }

    /// Adds 16 values of each of the four groups in `half`.
    AVX2_INLINE void add_half_groups(const std::uint8_t* p, std::size_t stride, const Activation& x, int b,
                                     int half, int part, const __m256i scales[4], __m256i sums[8]) {
        __m256i a[4], c[4], high[4], products[4][4];
        transpose_16_bytes(p + 64 * half + 16 * part, stride, a);
        transpose_16_bytes(p + 64 * half + 32 + 16 * part, stride, c);
        transpose_16_bytes(p + 128 + 32 * half + 16 * part, stride, high);
        const std::int8_t* q = x.quants.data() + 256 * b + 128 * half + 16 * part;
        for (int j = 0; j < 4; ++j) {
            __m256i codes[4];
            codes_of(a[j], c[j], high[j], codes);
            for (int k = 0; k < 4; ++k)
                products[k][j] = _mm256_maddubs_epi16(codes[k], broadcast_word(q + 32 * k + 4 * j));
        }
        for (int k = 0; k < 4; ++k) {  // 2 * 2 * 63 * 127 = 32004 fits 16 bits
            const int byte = 2 * (k % 2) + part;
            const __m256i scale = scale_pair(scales[2 * half + k / 2], byte, byte);
            const __m256i first = _mm256_madd_epi16(_mm256_add_epi16(products[k][0], products[k][1]), scale);
            const __m256i second = _mm256_madd_epi16(_mm256_add_epi16(products[k][2], products[k][3]), scale);
            sums[4 * half + k] = _mm256_add_epi32(sums[4 * half + k], _mm256_add_epi32(first, second));
        }
    }

    AVX2_INLINE void read_block(const std::uint8_t* p, const Activation& x, int b, Block& out) {
        const std::int8_t* q = x.quants.data() + 256 * b;
        const __m128i scales = load_16(p + 192);
        for (int half = 0; half < 2; ++half) {
            __m256i codes[4];
            codes_of(load(p + 64 * half), load(p + 64 * half + 32), load(p + 128 + 32 * half), codes);
            for (int k = 0; k < 4; ++k) {
                const int g = 4 * half + k;
                const __m128i spread =
                    _mm_set_epi64x(0x0101010101010101LL * (2 * g + 1), 0x0101010101010101LL * (2 * g));
                const __m256i scale = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(scales, spread));
                out.partial[g] = _mm256_madd_epi16(_mm256_maddubs_epi16(codes[k], load(q + 32 * g)), scale);
            }
        }
        const __m256i half_sums = load(x.half_sums.data() + 16 * b);
        out.correction = _mm256_slli_epi32(_mm256_madd_epi16(_mm256_cvtepi8_epi16(scales), half_sums), 5);
        out.ds = _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(p[208] | p[209] << 8)));
    }
};

struct IQ4XS {
    static constexpr Type kType = Type::IQ4_XS;

    /// Signed codes times signed activations, as sums of four in 32 bits; |T| * 127 * 2 fits 16 bits exactly
    /// once.
    AVX2_INLINE __m256i multiply(__m256i nibbles, __m256i q) {
        const __m256i table = _mm256_broadcastsi128_si256(load_16(kIq4Values));
        const __m256i codes = _mm256_shuffle_epi8(table, nibbles);
        return sum_pairs(_mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(q, codes)));
    }

    AVX2_INLINE void read_panel(const std::uint8_t* p, std::size_t stride, const Activation& x, int b,
                                Panel& out) {
        __m256i head[4];
        transpose_16_bytes(p, stride, head);
        const __m256 d = halves_to_floats(head[0]);
        for (int k = 0; k < 8; ++k) {
            const __m256i low = _mm256_and_si256(_mm256_srli_epi32(head[1], 4 * k), _mm256_set1_epi32(15));
            const __m256i high = _mm256_slli_epi32(_mm256_srli_epi32(head[0], 16 + 2 * k), 4);
            const __m256i scale = _mm256_or_si256(low, _mm256_and_si256(high, _mm256_set1_epi32(48)));
            out.ds[k] = d * _mm256_cvtepi32_ps(_mm256_sub_epi32(scale, _mm256_set1_epi32(32)));

            __m256i codes[4];
            transpose_16_bytes(p + 8 + 16 * k, stride, codes);
            const std::int8_t* q = x.quants.data() + 256 * b + 32 * k;
            __m256i sum = _mm256_setzero_si256();
            for (int j = 0; j < 4; ++j) {
                sum = _mm256_add_epi32(sum, multiply(low_nibbles(codes[j]), broadcast_word(q + 4 * j)));
                sum = _mm256_add_epi32(sum, multiply(high_nibbles(codes[j]), broadcast_word(q + 16 + 4 * j)));
            }
            out.sums[k] = sum;
        }
    }

    AVX2_INLINE void read_block(const std::uint8_t* p, const Activation& x, int b, Block& out) {
        const std::int8_t* q = x.quants.data() + 256 * b;
        for (int k = 0; k < 8; ++k) {
            const __m128i codes = load_16(p + 8 + 16 * k);
            const __m256i nibbles = low_nibbles(_mm256_set_m128i(_mm_srli_epi16(codes, 4), codes));
            out.partial[k] = multiply(nibbles, load(q + 32 * k));
        }
        const __m256i by_group = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
        const __m256i by_two = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
        const __m256i low =
            _mm256_and_si256(_mm256_srlv_epi32(broadcast_word(p + 4), by_group), _mm256_set1_epi32(15));
        const __m256i high = _mm256_srlv_epi32(_mm256_set1_epi32(p[2] | p[3] << 8), by_two);
        const __m256i scale =
            _mm256_or_si256(low, _mm256_slli_epi32(_mm256_and_si256(high, _mm256_set1_epi32(3)), 4));
        const __m256 d = _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(p[0] | p[1] << 8)));
        out.ds = d * _mm256_cvtepi32_ps(_mm256_sub_epi32(scale, _mm256_set1_epi32(32)));
    }
};

}  // namespace coterie::lab::avx2
