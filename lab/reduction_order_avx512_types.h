#pragma once

// AVX-512 code of the reduction-order study that follows no order: for each type the integer sums and scales
// of a block, with one lane per row and with one row at a time.

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12's own headers pass a deliberately undefined vector to masked builtins and warn about it when
// inlined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <immintrin.h>

#include "reduction_order_cpu.h"

#define AVX512_TARGET target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")
#define AVX512 __attribute__((AVX512_TARGET))
#define AVX512_INLINE __attribute__((AVX512_TARGET, always_inline)) static inline

namespace coterie::lab::avx512 {

AVX512_INLINE __m512i load(const void* p) { return _mm512_loadu_si512(p); }
AVX512_INLINE __m256i load_32(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
AVX512_INLINE __m128i load_16(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
AVX512_INLINE __m512i broadcast_word(const void* p) {
    return _mm512_set1_epi32(static_cast<int>(load_word(p)));
}
AVX512_INLINE __m512i low_nibbles(__m512i v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
AVX512_INLINE __m512i high_nibbles(__m512i v) { return low_nibbles(_mm512_srli_epi16(v, 4)); }

/// Two pairs of rows of 32-bit lanes -> their lanes 4i .. 4i+3 side by side, the first half of a transpose.
AVX512_INLINE void interleave(const __m512i rows[4], __m512i out[4]) {
    const __m512i a = _mm512_unpacklo_epi32(rows[0], rows[1]);
    const __m512i b = _mm512_unpacklo_epi32(rows[2], rows[3]);
    const __m512i c = _mm512_unpackhi_epi32(rows[0], rows[1]);
    const __m512i d = _mm512_unpackhi_epi32(rows[2], rows[3]);
    out[0] = _mm512_unpacklo_epi64(a, b);
    out[1] = _mm512_unpackhi_epi64(a, b);
    out[2] = _mm512_unpacklo_epi64(c, d);
    out[3] = _mm512_unpackhi_epi64(c, d);
}

/// 16 rows x 16 bytes -> 4 vectors whose lane r holds bytes 4j .. 4j+3 of row r.
AVX512_INLINE void transpose_16_bytes(const std::uint8_t* p, std::size_t stride, __m512i out[4]) {
    __m512i rows[4];
    for (int r = 0; r < 4; ++r) {
        rows[r] = _mm512_castsi128_si512(load_16(p + r * stride));
        rows[r] = _mm512_inserti32x4(rows[r], load_16(p + (r + 4) * stride), 1);
        rows[r] = _mm512_inserti32x4(rows[r], load_16(p + (r + 8) * stride), 2);
        rows[r] = _mm512_inserti32x4(rows[r], load_16(p + (r + 12) * stride), 3);
    }
    interleave(rows, out);
}

/// 16 rows x 32 bytes -> 8 such vectors.
AVX512_INLINE void transpose_32_bytes(const std::uint8_t* p, std::size_t stride, __m512i out[8]) {
    __m512i halves[2][4];
    for (int half = 0; half < 2; ++half) {
        __m512i rows[4];
        for (int r = 0; r < 4; ++r)
            rows[r] = _mm512_inserti64x4(_mm512_castsi256_si512(load_32(p + (8 * half + r) * stride)),
                                         load_32(p + (8 * half + r + 4) * stride), 1);
        interleave(rows, halves[half]);
    }
    for (int j = 0; j < 4; ++j) {
        out[j] = _mm512_shuffle_i64x2(halves[0][j], halves[1][j], 0x88);
        out[j + 4] = _mm512_shuffle_i64x2(halves[0][j], halves[1][j], 0xdd);
    }
}

AVX512_INLINE __m512 halves_to_floats(__m512i lanes) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(lanes)); }

AVX512_INLINE __m512 byte_to_float(__m512i bytes, int index) {
    return _mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(bytes, 8 * index), _mm512_set1_epi32(255)));
}

AVX512_INLINE __m512i fold_pair(__m512i a, __m512i b) {
    return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}
AVX512_INLINE __m512i fold_quad(__m512i a, __m512i b) {
    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}
AVX512_INLINE __m256i gather_lanes(__m512i v, __m512i lanes) {
    return _mm512_castsi512_si256(_mm512_permutexvar_epi32(lanes, v));
}

/// One block of 16 rows: lane r of vector k belongs to group k of row r.
struct Panel {
    __m512i sums[8];
    __m512 ds[8], ms[8];
};

/// One block of one row: lane k belongs to group k.
struct Block {
    __m256 ds, ms;
};

struct Q4K {
    static constexpr Type kType = Type::Q4_K;

    AVX512_INLINE void read_panel(const std::uint8_t* p, std::size_t stride, const Activation& x, int b,
                                  Panel& out) {
        __m512i head[4];
        transpose_16_bytes(p, stride, head);
        const __m512 d = halves_to_floats(head[0]);
        const __m512 negative_dmin = -halves_to_floats(_mm512_srli_epi32(head[0], 16));
        const __m512i low6 = _mm512_set1_epi8(63);
        const __m512i top2 = _mm512_set1_epi8(48);
        const __m512i scales[2] = {
            _mm512_and_si512(head[1], low6),
            _mm512_or_si512(low_nibbles(head[3]), _mm512_and_si512(_mm512_srli_epi32(head[1], 2), top2))};
        const __m512i minima[2] = {
            _mm512_and_si512(head[2], low6),
            _mm512_or_si512(high_nibbles(head[3]), _mm512_and_si512(_mm512_srli_epi32(head[2], 2), top2))};
        for (int k = 0; k < 8; ++k) {
            out.ds[k] = d * byte_to_float(scales[k / 4], k % 4);
            out.ms[k] = negative_dmin * byte_to_float(minima[k / 4], k % 4);
        }
        for (int i = 0; i < 4; ++i) {
            const std::int8_t* q = x.quants.data() + 256 * b + 64 * i;
            __m512i codes[8];
            transpose_32_bytes(p + 16 + 32 * i, stride, codes);
            __m512i low = _mm512_setzero_si512();
            __m512i high = _mm512_setzero_si512();
            for (int j = 0; j < 8; ++j) {
                low = _mm512_dpbusd_epi32(low, low_nibbles(codes[j]), broadcast_word(q + 4 * j));
                high = _mm512_dpbusd_epi32(high, high_nibbles(codes[j]), broadcast_word(q + 32 + 4 * j));
            }
            out.sums[2 * i] = low;
            out.sums[2 * i + 1] = high;
        }
    }

    /// z[2i] holds groups 4i and 4i + 2, z[2i + 1] groups 4i + 1 and 4i + 3.
    AVX512_INLINE Block read_block(const std::uint8_t* p, const Activation& x, int b, __m512i z[4]) {
        const std::int8_t* q = x.wide_quants[0].data() + 256 * b;
        for (int i = 0; i < 2; ++i) {
            const __m512i codes = load(p + 16 + 64 * i);
            z[2 * i] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), low_nibbles(codes), load(q + 128 * i));
            z[2 * i + 1] =
                _mm512_dpbusd_epi32(_mm512_setzero_si512(), high_nibbles(codes), load(q + 128 * i + 64));
        }
        const PackedScales packed = unpack_q4_k_scales(p);
        const __m128 factors = _mm_cvtph_ps(_mm_cvtsi32_si128(static_cast<int>(load_word(p))));
        const __m256i scales = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(packed.scales)));
        const __m256i minima = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(packed.minima)));
        return {_mm256_broadcastss_ps(factors) * _mm256_cvtepi32_ps(scales),
                -_mm256_broadcastss_ps(_mm_movehdup_ps(factors)) * _mm256_cvtepi32_ps(minima)};
    }

    AVX512_INLINE __m256i fold(const __m512i z[4], const std::uint8_t*, const Activation&, int) {
        const __m512i quads = fold_quad(fold_pair(z[0], z[1]), fold_pair(z[2], z[3]));
        const __m512i sums = _mm512_add_epi32(quads, _mm512_shuffle_i64x2(quads, quads, 0xb1));
        return gather_lanes(sums, _mm512_setr_epi32(0, 1, 8, 9, 2, 3, 10, 11, 0, 0, 0, 0, 0, 0, 0, 0));
    }

    AVX512_INLINE void add_free(const __m512i z[4], const std::uint8_t*, const Activation&, int,
                                __m256 factor, __m512 acc[2]) {
        const __m512i groups = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2);
        const int offsets[4] = {0, 1, 4, 5};
        for (int i = 0; i < 4; ++i) {
            const __m512i lanes = _mm512_add_epi32(groups, _mm512_set1_epi32(offsets[i]));
            const __m512 factors = _mm512_permutexvar_ps(lanes, _mm512_castps256_ps512(factor));
            acc[i % 2] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(z[i]), factors, acc[i % 2]);
        }
    }
};

struct Q6K {
    static constexpr Type kType = Type::Q6_K;

    AVX512_INLINE __m512i join(__m512i low, __m512i high) {
        return _mm512_or_si512(low, _mm512_and_si512(high, _mm512_set1_epi8(48)));
    }

    AVX512_INLINE __m512i signed_byte(__m512i bytes, int index) {
        return _mm512_srai_epi32(_mm512_slli_epi32(bytes, 24 - 8 * index), 24);
    }

    AVX512_INLINE void read_panel(const std::uint8_t* p, std::size_t stride, const Activation& x, int b,
                                  Panel& out) {
        __m512i scales[4];
        transpose_16_bytes(p + 192, stride, scales);
        alignas(32) std::uint16_t factors[16];
        for (int r = 0; r < 16; ++r) std::memcpy(factors + r, p + 208 + r * stride, 2);
        const __m512 d = _mm512_cvtph_ps(load_32(factors));
        for (int half = 0; half < 2; ++half) {
            __m512i a[8], c[8], high[8];
            transpose_32_bytes(p + 64 * half, stride, a);
            transpose_32_bytes(p + 64 * half + 32, stride, c);
            transpose_32_bytes(p + 128 + 32 * half, stride, high);
            for (int k = 0; k < 4; ++k) {
                const int g = 4 * half + k;
                const std::int8_t* q = x.quants.data() + 256 * b + 32 * g;
                __m512i parts[2];
                for (int part = 0; part < 2; ++part) {  // codes are stored with an offset of 32
                    parts[part] = _mm512_set1_epi32(-32 * x.half_sums[16 * b + 2 * g + part]);
                    for (int j = 4 * part; j < 4 * part + 4; ++j)
                        parts[part] = _mm512_dpbusd_epi32(parts[part], code(a[j], c[j], high[j], k),
                                                          broadcast_word(q + 4 * j));
                    const __m512i scale = signed_byte(scales[g / 2], 2 * (g % 2) + part);
                    parts[part] = _mm512_mullo_epi32(parts[part], scale);
                }
                out.sums[g] = _mm512_add_epi32(parts[0], parts[1]);
                out.ds[g] = d;
            }
        }
    }

    AVX512_INLINE __m512i code(__m512i a, __m512i c, __m512i high, int k) {
        if (k == 0) return join(low_nibbles(a), _mm512_slli_epi16(high, 4));
        if (k == 1) return join(low_nibbles(c), _mm512_slli_epi16(high, 2));
        return k == 2 ? join(high_nibbles(a), high) : join(high_nibbles(c), _mm512_srli_epi16(high, 2));
    }

    /// z[2h] holds groups 4h and 4h + 1, z[2h + 1] groups 4h + 2 and 4h + 3; each 128 bits are one half of a
    /// group.
    AVX512_INLINE Block read_block(const std::uint8_t* p, const Activation& x, int b, __m512i z[4]) {
        const std::int8_t* q = x.quants.data() + 256 * b;
        const __m512i first = _mm512_setr_epi64(4, 4, 4, 4, 2, 2, 2, 2);
        const __m512i second = _mm512_setr_epi64(0, 0, 0, 0, 2, 2, 2, 2);
        for (int half = 0; half < 2; ++half) {
            const __m512i low = load(p + 64 * half);
            const __m512i high = _mm512_broadcast_i64x4(load_32(p + 128 + 32 * half));
            z[2 * half] = _mm512_dpbusd_epi32(_mm512_setzero_si512(),
                                              join(low_nibbles(low), _mm512_sllv_epi64(high, first)),
                                              load(q + 128 * half));
            z[2 * half + 1] = _mm512_dpbusd_epi32(_mm512_setzero_si512(),
                                                  join(high_nibbles(low), _mm512_srlv_epi64(high, second)),
                                                  load(q + 128 * half + 64));
        }
        const __m256 d = _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(p[208] | p[209] << 8)));
        return {d, _mm256_setzero_ps()};
    }

    AVX512_INLINE __m512i scales_of(const std::uint8_t* p) { return _mm512_cvtepi8_epi32(load_16(p + 192)); }
    AVX512_INLINE __m512i offsets_of(const Activation& x, int b) {
        return _mm512_slli_epi32(_mm512_cvtepi16_epi32(load_32(x.half_sums.data() + 16 * b)), 5);
    }

    AVX512_INLINE __m256i fold(const __m512i z[4], const std::uint8_t* p, const Activation& x, int b) {
        const __m512i quads = fold_quad(fold_pair(z[0], z[1]), fold_pair(z[2], z[3]));
        const __m512i by_half = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        const __m512i halves = _mm512_sub_epi32(_mm512_permutexvar_epi32(by_half, quads), offsets_of(x, b));
        const __m512i scaled = _mm512_mullo_epi32(halves, scales_of(p));
        return _mm512_cvtepi64_epi32(_mm512_add_epi32(scaled, _mm512_srli_epi64(scaled, 32)));
    }

    AVX512_INLINE void add_free(const __m512i z[4], const std::uint8_t* p, const Activation& x, int b,
                                __m256 factor, __m512 acc[2]) {
        const __m512i by_group = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
        const __m512 factors = _mm512_permutexvar_ps(by_group, _mm512_castps256_ps512(factor)) *
                               _mm512_cvtepi32_ps(scales_of(p));
        for (int i = 0; i < 4; ++i) {
            const __m512i first = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
            const __m512i lanes = _mm512_add_epi32(first, _mm512_set1_epi32(4 * i));
            acc[i % 2] =
                _mm512_fmadd_ps(_mm512_cvtepi32_ps(z[i]), _mm512_permutexvar_ps(lanes, factors), acc[i % 2]);
        }
        acc[0] = _mm512_fnmadd_ps(_mm512_cvtepi32_ps(offsets_of(x, b)), factors, acc[0]);
    }
};

struct IQ4XS {
    static constexpr Type kType = Type::IQ4_XS;

    /// The table with 128 added, to be the unsigned operand; 128 times the sum of the activations is taken
    /// off again.
    AVX512_INLINE __m512i codes_of(__m512i nibbles) {
        const __m128i table = _mm_xor_si128(load_16(kIq4Values), _mm_set1_epi8(-128));
        return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), nibbles);
    }

    AVX512_INLINE void read_panel(const std::uint8_t* p, std::size_t stride, const Activation& x, int b,
                                  Panel& out) {
        __m512i head[4];
        transpose_16_bytes(p, stride, head);
        const __m512 d = halves_to_floats(head[0]);
        for (int k = 0; k < 8; ++k) {
            const __m512i low = _mm512_and_si512(_mm512_srli_epi32(head[1], 4 * k), _mm512_set1_epi32(15));
            const __m512i high = _mm512_slli_epi32(_mm512_srli_epi32(head[0], 16 + 2 * k), 4);
            const __m512i scale = _mm512_or_si512(low, _mm512_and_si512(high, _mm512_set1_epi32(48)));
            out.ds[k] = d * _mm512_cvtepi32_ps(_mm512_sub_epi32(scale, _mm512_set1_epi32(32)));
        }
        for (int i = 0; i < 4; ++i) {
            __m512i codes[8];
            transpose_32_bytes(p + 8 + 32 * i, stride, codes);
            for (int k = 2 * i; k < 2 * i + 2; ++k) {
                const std::int8_t* q = x.quants.data() + 256 * b + 32 * k;
                const std::int16_t* half_sums = x.half_sums.data() + 16 * b + 2 * k;
                __m512i low = _mm512_set1_epi32(-128 * (half_sums[0] + half_sums[1]));
                __m512i high = _mm512_setzero_si512();
                for (int j = 0; j < 4; ++j) {
                    const __m512i word = codes[4 * (k % 2) + j];
                    low = _mm512_dpbusd_epi32(low, codes_of(low_nibbles(word)), broadcast_word(q + 4 * j));
                    high = _mm512_dpbusd_epi32(high, codes_of(high_nibbles(word)),
                                               broadcast_word(q + 16 + 4 * j));
                }
                out.sums[k] = _mm512_add_epi32(low, high);
            }
        }
    }

    /// Each 128 bits of z[i] hold one of the groups 4i .. 4i + 3.
    AVX512_INLINE Block read_block(const std::uint8_t* p, const Activation& x, int b, __m512i z[4]) {
        const std::int8_t* q = x.wide_quants[2].data() + 256 * b;
        for (int i = 0; i < 2; ++i) {
            const __m512i codes = load(p + 8 + 64 * i);
            z[i] =
                _mm512_dpbusd_epi32(_mm512_setzero_si512(), codes_of(low_nibbles(codes)), load(q + 128 * i));
            z[i] = _mm512_dpbusd_epi32(z[i], codes_of(high_nibbles(codes)), load(q + 128 * i + 64));
        }
        const __m256i by_four = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
        const __m256i by_two = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
        const __m256i low = _mm256_and_si256(
            _mm256_srlv_epi32(_mm256_set1_epi32(static_cast<int>(load_word(p + 4))), by_four),
            _mm256_set1_epi32(15));
        const __m256i high = _mm256_srlv_epi32(_mm256_set1_epi32(p[2] | p[3] << 8), by_two);
        const __m256i scale =
            _mm256_or_si256(low, _mm256_slli_epi32(_mm256_and_si256(high, _mm256_set1_epi32(3)), 4));
        const __m256 d = _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(p[0] | p[1] << 8)));
        return {d * _mm256_cvtepi32_ps(_mm256_sub_epi32(scale, _mm256_set1_epi32(32))), _mm256_setzero_ps()};
    }

    /// 128 times the sum of each group's activations.
    AVX512_INLINE __m256i offsets_of(const Activation& x, int b) {
        const __m256i half_sums = load_32(x.half_sums.data() + 16 * b);
        return _mm256_slli_epi32(_mm256_madd_epi16(half_sums, _mm256_set1_epi16(1)), 7);
    }

    AVX512_INLINE __m256i fold(const __m512i z[4], const std::uint8_t*, const Activation& x, int b) {
        const __m512i pairs = fold_pair(z[0], z[1]);
        const __m512i sums = _mm512_add_epi32(pairs, _mm512_shuffle_epi32(pairs, _MM_PERM_BADC));
        const __m512i by_group = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0);
        return _mm256_sub_epi32(gather_lanes(sums, by_group), offsets_of(x, b));
    }

    AVX512_INLINE void add_free(const __m512i z[4], const std::uint8_t*, const Activation& x, int b,
                                __m256 factor, __m512 acc[2]) {
        const __m512i groups = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
        for (int i = 0; i < 2; ++i) {
            const __m512i lanes = _mm512_add_epi32(groups, _mm512_set1_epi32(4 * i));
            const __m512 factors = _mm512_permutexvar_ps(lanes, _mm512_castps256_ps512(factor));
            acc[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(z[i]), factors, acc[i]);
        }
        const __m256 rest = _mm256_cvtepi32_ps(offsets_of(x, b)) * factor;
        acc[0] -= _mm512_zextps256_ps512(rest);
    }
};

}  // namespace coterie::lab::avx512
