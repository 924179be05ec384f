#pragma once

#include "kernels/cpu/matmul/panel.h"

namespace coterie::cpu::matmul::COTERIE_ISA {

/// The header of Q4_K and Q5_K: d, dmin and twelve bytes of 6-bit scales and minima, 16 bytes together.
COTERIE_INLINE void unpack_scales_and_minima(Strip block, Panel& panel) {
    Int header[4];
    load_columns_16(block, header);
    const Float d = halves_to_float(bits_and(header[0], every_lane(0xffff)));
    const Float minus_dmin = negate(halves_to_float(lanes_right<16>(header[0])));
    const Int six_bits = every_byte(63);
    const Int top_two_bits = every_byte(48);
    const Int nibble = every_byte(15);
    // Byte g of a lane belongs to sub-block g (or g + 4) of its row.
    const Int scales[2] = {
        bits_and(header[1], six_bits),
        bits_or(bits_and(header[3], nibble), bits_and(words_right<2>(header[1]), top_two_bits))};
    const Int minima[2] = {bits_and(header[2], six_bits),
                           bits_or(bits_and(words_right<4>(header[3]), nibble),
                                   bits_and(words_right<2>(header[2]), top_two_bits))};
    COTERIE_UNROLL
    for (int g = 0; g < kPanelGroups; ++g) {
        const Int byte = lane_pattern(g % 4, -1, -1, -1);
        panel.ds[g][0] = multiply(d, to_float(shuffle_bytes(scales[g / 4], byte)));
        panel.ms[g] = multiply(minus_dmin, to_float(shuffle_bytes(minima[g / 4], byte)));
    }
}

/// d, dmin, 12 bytes of scales; then for each 64 values 32 bytes: low nibbles are the first 32 values, high
/// nibbles the rest.
struct Q4_K {
    static constexpr Form kForm = unsigned_form(15, 0, Scales::Group, Minimum::Group);
    static constexpr int kBlockGroups = 8;
    static constexpr int kBlockBytes = 144;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int, Panel& panel, Consumer& consumer) {
        unpack_scales_and_minima(block, panel);
        const Int nibble = every_byte(15);
        for (int pair = 0; pair < 4; ++pair) {
            auto sink = consumer.template chunk<2>(2 * pair);
            COTERIE_UNROLL
            for (int half = 0; half < 2; ++half) {
                Int bytes[4];
                load_columns_16(block.at(16 + 32 * pair + 16 * half), bytes);
                COTERIE_UNROLL
                for (int c = 0; c < 4; ++c) {
                    sink.put(0, 4 * half + c, bits_and(bytes[c], nibble));
                    sink.put(1, 4 * half + c, bits_and(words_right<4>(bytes[c]), nibble));
                }
            }
            sink.finish();
        }
    }
};

/// As Q4_K, with 32 bytes after the scales: bit k of byte l is the fifth bit of value l of sub-block k.
struct Q5_K {
    static constexpr Form kForm = unsigned_form(31, 0, Scales::Group, Minimum::Group);
    static constexpr int kBlockGroups = 8;
    static constexpr int kBlockBytes = 176;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int, Panel& panel, Consumer& consumer) {
        unpack_scales_and_minima(block, panel);
        const Int nibble = every_byte(15);
        const Int fifth_bit = every_byte(16);
        Int high[8];
        load_columns_16(block.at(16), high);
        load_columns_16(block.at(32), high + 4);
        for (int pair = 0; pair < 4; ++pair) {
            auto sink = consumer.template chunk<2>(2 * pair);
            COTERIE_UNROLL
            for (int half = 0; half < 2; ++half) {
                Int bytes[4];
                load_columns_16(block.at(48 + 32 * pair + 16 * half), bytes);
                COTERIE_UNROLL
                for (int c = 0; c < 4; ++c) {
                    const int step = 4 * half + c;
                    // The two bits of this pair are the lowest of each byte.
                    const Int first = bits_and(words_left<4>(high[step]), fifth_bit);
                    const Int second = bits_and(words_left<3>(high[step]), fifth_bit);
                    sink.put(0, step, bits_or(bits_and(bytes[c], nibble), first));
                    sink.put(1, step, bits_or(bits_and(words_right<4>(bytes[c]), nibble), second));
                    high[step] = words_right<2>(high[step]);
                }
            }
            sink.finish();
        }
    }
};

}  // namespace coterie::cpu::matmul::COTERIE_ISA
