#pragma once

#include "kernels/cpu/matmul/sources/blocks_of_32.h"

namespace coterie::cpu::matmul::COTERIE_ISA {

/// d, scale bits, 8 x 16 bytes of nibbles that index a table.
struct IQ4_XS {
    static constexpr Form kForm = signed_form(kLargestIq4Value);
    static constexpr int kBlockGroups = 8;
    static constexpr int kBlockBytes = 136;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int, Panel& panel, Consumer& consumer) {
        Int header[2];
        load_columns_8(block, header);
        const Float d = halves_to_float(bits_and(header[0], every_lane(0xffff)));
        const Int high = lanes_right<16>(header[0]);
        const Int table = byte_table(kIq4Values);
        COTERIE_UNROLL
        for (int g = 0; g < kPanelGroups; ++g) {
            const Int low_bits = bits_and(lanes_right(header[1], 4 * g), every_lane(15));
            const Int high_bits = lanes_left<4>(bits_and(lanes_right(high, 2 * g), every_lane(3)));
            const Int scale = subtract_lanes(bits_or(low_bits, high_bits), every_lane(32));
            panel.ds[g][0] = multiply(d, to_float(scale));
        }
        for (int g = 0; g < kPanelGroups; ++g) put_table_nibbles(block.at(8 + 16 * g), table, g, consumer);
    }
};

/// Four scales (one for each 16 values), then for each of them 8 bytes of FP4 codes.
struct NVFP4 {
    static constexpr Form kForm = unsigned_form(kLargestFp4PlusTwelve, 12, Scales::TwoUpdates);
    static constexpr int kBlockGroups = 2;
    static constexpr int kBlockBytes = 36;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int group, Panel& panel, Consumer& consumer) {
        const Int scales = load_lanes(block);
        const Int table = byte_table(kFp4PlusTwelve);
        const Int nibble = every_byte(15);
        COTERIE_UNROLL
        for (int g = 0; g < kBlockGroups; ++g) {
            panel.ds[group + g][0] = half_of_ue4m3(lanes_right(scales, 16 * g));
            panel.ds[group + g][1] = half_of_ue4m3(lanes_right(scales, 16 * g + 8));
            Int bytes[4];
            load_columns_16(block.at(4 + 16 * g), bytes);
            auto sink = consumer.template chunk<1>(group + g);
            COTERIE_UNROLL
            for (int step = 0; step < 8; ++step) {
                const Int packed = bytes[step / 4 * 2 + step % 2];
                const Int code = bits_and(step % 4 < 2 ? packed : words_right<4>(packed), nibble);
                sink.put(0, step, shuffle_bytes(table, code));
            }
            sink.finish();
        }
    }

  private:
    /// Exponent and mantissa, placed where binary32 has them, stand for a number that is 2^119 times too
    /// small; the subnormals too.
    COTERIE_INLINE static Float half_of_ue4m3(Int lanes) {
        const Int code = bits_and(lanes, every_lane(0x7f));
        const Int number = lanes_other_than(code, every_lane(0x7f));
        return multiply(as_float(lanes_left<20>(number)), every_float(0x1p119f));
    }
};

/// d, 128 bits: set for +d, clear for -d.
struct Q1_0 {
    static constexpr Form kForm = unsigned_form(2, 1);
    static constexpr int kBlockGroups = 4;
    static constexpr int kBlockBytes = 18;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int group, Panel& panel, Consumer& consumer) {
        Float d;
        Float unused;
        load_two_halves(block, d, unused);
        Int lanes[4];
        load_columns_16(block.at(2), lanes);
        COTERIE_UNROLL
        for (int g = 0; g < kBlockGroups; ++g) {
            panel.ds[group + g][0] = d;
            const BitBytes bits(lanes[g]);
            auto sink = consumer.template chunk<1>(group + g);
            COTERIE_UNROLL
            for (int step = 0; step < 8; ++step)
                sink.put(0, step, smaller_bytes(bits.step(step), every_byte(2)));
            sink.finish();
        }
    }
};

/// d, 64 codes of two bits, four neighbours in a byte.
struct Q2_0 {
    static constexpr Form kForm = unsigned_form(3, 1);
    static constexpr int kBlockGroups = 2;
    static constexpr int kBlockBytes = 18;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int group, Panel& panel, Consumer& consumer) {
        Float d;
        Float unused;
        load_two_halves(block, d, unused);
        Int bytes[4];
        load_columns_16(block.at(2), bytes);
        COTERIE_UNROLL
        for (int g = 0; g < kBlockGroups; ++g) {
            panel.ds[group + g][0] = d;
            auto sink = consumer.template chunk<1>(group + g);
            COTERIE_UNROLL
            for (int step = 0; step < 8; ++step) sink.put(0, step, spread(bytes[2 * g + step / 4], step % 4));
            sink.finish();
        }
    }

  private:
    /// The four codes of byte `byte` of each lane, one in each byte.
    COTERIE_INLINE static Int spread(Int bytes, int byte) {
        // A masked nibble is 0 to 3, or 4 times that.
        alignas(16) static constexpr std::int8_t kCodes[16] = {0, 1, 2, 3, 1, 0, 0, 0,
                                                               2, 0, 0, 0, 3, 0, 0, 0};
        const Int low = shuffle_bytes(bytes, lane_pattern(byte, byte, -1, -1));
        const Int high = shuffle_bytes(words_right<4>(bytes), lane_pattern(-1, -1, byte, byte));
        return shuffle_bytes(byte_table(kCodes), bits_and(bits_or(low, high), every_word(0x0c03)));
    }
};

}  // namespace coterie::cpu::matmul::COTERIE_ISA
