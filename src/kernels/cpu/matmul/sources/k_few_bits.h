#pragma once

#include "kernels/cpu/matmul/panel.h"

// Q2_K, Q3_K and the ternary types. Where 32 bytes hold 128 codes of two bits, bits 2t and 2t + 1 are those
// of the t-th 32 values.

namespace coterie::cpu::matmul::COTERIE_ISA {

/// 32 bytes of two-bit codes: code t of byte `step`, for t from 0 to 3.
COTERIE_INLINE Int two_bits(Int bytes, int t) {
    const Int mask = every_byte(3);
    switch (t) {
        case 0:
            return bits_and(bytes, mask);
        case 1:
            return bits_and(words_right<2>(bytes), mask);
        case 2:
            return bits_and(words_right<4>(bytes), mask);
        default:
            return bits_and(words_right<6>(bytes), mask);
    }
}

template <class Consumer>
COTERIE_INLINE void put_two_bits(Strip codes, Consumer& consumer) {
    for (int half = 0; half < 2; ++half) {
        auto sink = consumer.template chunk<4>(4 * half);
        COTERIE_UNROLL
        for (int l = 0; l < 32; l += 16) {
            Int bytes[4];
            load_columns_16(codes.at(32 * half + l), bytes);
            COTERIE_UNROLL
            for (int c = 0; c < 4; ++c) {
                COTERIE_UNROLL
                for (int t = 0; t < 4; ++t) sink.put(t, l / 4 + c, two_bits(bytes[c], t));
            }
        }
        sink.finish();
    }
}

/// 16 bytes of scale and minimum nibbles (one for each 16 values), 64 bytes of codes, d, dmin.
struct Q2_K {
    static constexpr Form kForm = unsigned_form(3, 0, Scales::Half, Minimum::Half);
    static constexpr int kBlockGroups = 8;
    static constexpr int kBlockBytes = 84;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int, Panel& panel, Consumer& consumer) {
        unpack_scales(block, panel);
        put_two_bits(block.at(16), consumer);
    }

  private:
    COTERIE_INLINE static void unpack_scales(Strip block, Panel& panel) {
        const Int nibble = every_byte(15);
        Int bytes[4];
        load_columns_16(block, bytes);
        Float d;
        Float dmin;
        load_two_halves(block.at(80), d, dmin);
        COTERIE_UNROLL
        for (int g = 0; g < kPanelGroups; ++g) {
            const int byte = 2 * (g % 2);
            const Int minima = bits_and(words_right<4>(bytes[g / 2]), nibble);
            panel.ds[g][0] = d;
            panel.ms[g] = negate(dmin);
            panel.half_scales[g].template set<kForm.offset>(bits_and(bytes[g / 2], nibble), byte);
            panel.half_minima[g] = shuffle_bytes(minima, lane_pattern(byte, -1, byte + 1, -1));
        }
    }
};

/// 32 bytes of third bits (bit g of byte l is that of value l of group g), 64 bytes of codes, 12 bytes of
/// 6-bit scales, d.
struct Q3_K {
    static constexpr Form kForm = unsigned_form(7, 4, Scales::Half);
    static constexpr int kBlockGroups = 8;
    static constexpr int kBlockBytes = 110;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int, Panel& panel, Consumer& consumer) {
        unpack_scales(block, panel);
        Int high[8];
        load_columns_16(block, high);
        load_columns_16(block.at(16), high + 4);
        for (int half = 0; half < 2; ++half) {
            auto sink = consumer.template chunk<4>(4 * half);
            COTERIE_UNROLL
            for (int l = 0; l < 32; l += 16) {
                Int bytes[4];
                load_columns_16(block.at(32 + 32 * half + l), bytes);
                COTERIE_UNROLL
                for (int c = 0; c < 4; ++c) {
                    const int step = l / 4 + c;
                    put(sink, step, bytes[c], high[step]);
                    high[step] = words_right<4>(high[step]);
                }
            }
            sink.finish();
        }
    }

  private:
    template <class Sink>
    COTERIE_INLINE static void put(Sink& sink, int step, Int bytes, Int high) {
        const Int third_bit = every_byte(4);
        sink.put(0, step, bits_or(two_bits(bytes, 0), bits_and(words_left<2>(high), third_bit)));
        sink.put(1, step, bits_or(two_bits(bytes, 1), bits_and(words_left<1>(high), third_bit)));
        sink.put(2, step, bits_or(two_bits(bytes, 2), bits_and(high, third_bit)));
        sink.put(3, step, bits_or(two_bits(bytes, 3), bits_and(words_right<1>(high), third_bit)));
    }

    COTERIE_INLINE static void unpack_scales(Strip block, Panel& panel) {
        const Int nibble = every_byte(15);
        const Int top = every_byte(48);
        const Int bias = every_byte(32);
        const Int first = load_lanes(block.at(96));
        const Int second = load_lanes(block.at(100));
        const Int tops = load_lanes(block.at(104));  // bits 2i and 2i + 1 of byte j belong to scale 4i + j
        const Int scales[4] = {
            bits_or(bits_and(first, nibble), bits_and(words_left<4>(tops), top)),
            bits_or(bits_and(second, nibble), bits_and(words_left<2>(tops), top)),
            bits_or(bits_and(words_right<4>(first), nibble), bits_and(tops, top)),
            bits_or(bits_and(words_right<4>(second), nibble), bits_and(words_right<2>(tops), top))};
        Float last_bytes;
        Float d;
        load_two_halves(block.at(106), last_bytes, d);
        COTERIE_UNROLL
        for (int g = 0; g < kPanelGroups; ++g) {
            panel.ds[g][0] = d;
            panel.half_scales[g].template set<kForm.offset>(subtract_bytes(scales[g / 2], bias), 2 * (g % 2));
        }
    }
};

/// 64 bytes of codes, d.
struct TQ2_0 {
    static constexpr Form kForm = unsigned_form(3, 1);
    static constexpr int kBlockGroups = 8;
    static constexpr int kBlockBytes = 66;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int, Panel& panel, Consumer& consumer) {
        Float last_bytes;
        Float d;
        load_two_halves(block.at(62), last_bytes, d);
        for (int g = 0; g < kPanelGroups; ++g) panel.ds[g][0] = d;
        put_two_bits(block, consumer);
    }
};

/// Base-3 digits as fixed-point fractions: multiplying a byte by 3 moves its next digit into bits 8 and 9. 32
/// bytes hold five groups, 16 bytes two and a half, 4 bytes the last half; d.
struct TQ1_0 {
    static constexpr Form kForm = unsigned_form(2, 1);
    static constexpr int kBlockGroups = 8;
    static constexpr int kBlockBytes = 54;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int, Panel& panel, Consumer& consumer) {
        Float last_bytes;
        Float d;
        load_two_halves(block.at(50), last_bytes, d);
        for (int g = 0; g < kPanelGroups; ++g) panel.ds[g][0] = d;
        Int bytes[8];
        load_columns_16(block, bytes);
        load_columns_16(block.at(16), bytes + 4);
        for (int g = 0; g < 5; ++g) {
            auto sink = consumer.template chunk<1>(g);
            COTERIE_UNROLL
            for (int step = 0; step < 8; ++step) sink.put(0, step, next_digit(bytes[step]));
            sink.finish();
        }
        put_last_groups(block, consumer);
    }

  private:
    template <class Consumer>
    COTERIE_INLINE static void put_last_groups(Strip block, Consumer& consumer) {
        Int bytes[4];
        load_columns_16(block.at(32), bytes);
        Int last = load_lanes(block.at(48));
        for (int g = 5; g < kPanelGroups; ++g) {
            auto sink = consumer.template chunk<1>(g);
            COTERIE_UNROLL
            for (int step = 0; step < 4; ++step) sink.put(0, step, next_digit(bytes[step]));
            COTERIE_UNROLL
            for (int step = 0; step < 4; ++step) {
                sink.put(0, 4 + step, next_digit(g < 7 ? bytes[step] : last));
            }
            sink.finish();
        }
    }

    /// The digit of each byte; leaves the fraction that is left.
    COTERIE_INLINE static Int next_digit(Int& bytes) {
        const Int three = every_word(3);
        const Int odd_bytes = every_word(-256);
        const Int even = high_products(words_left<8>(bytes), three);
        const Int odd = high_products(bits_and(bytes, odd_bytes), three);
        bytes = add_bytes(bytes, add_bytes(bytes, bytes));
        return bits_or(even, words_left<8>(odd));
    }
};

}  // namespace coterie::cpu::matmul::COTERIE_ISA
