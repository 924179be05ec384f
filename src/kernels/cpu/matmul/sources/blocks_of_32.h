#pragma once

#include "kernels/cpu/matmul/sources/bits.h"

// Types with blocks of one group. Where 16 bytes hold 32 nibbles, the low ones are the first 16 values.

namespace coterie::cpu::matmul::COTERIE_ISA {

/// d, nibbles.
struct Q4_0 {
    static constexpr Form kForm = unsigned_form(15, 8);
    static constexpr int kBlockGroups = 1;
    static constexpr int kBlockBytes = 18;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int group, Panel& panel, Consumer& consumer) {
        Float unused;
        load_two_halves(block, panel.ds[group][0], unused);
        put_nibbles(block.at(2), group, consumer);
    }

    template <class Consumer>
    COTERIE_INLINE static void put_nibbles(Strip nibbles, int group, Consumer& consumer) {
        const Int nibble = every_byte(15);
        Int bytes[4];
        load_columns_16(nibbles, bytes);
        auto sink = consumer.template chunk<1>(group);
        COTERIE_UNROLL
        for (int c = 0; c < 4; ++c) sink.put(0, c, bits_and(bytes[c], nibble));
        COTERIE_UNROLL
        for (int c = 0; c < 4; ++c) sink.put(0, 4 + c, bits_and(words_right<4>(bytes[c]), nibble));
        sink.finish();
    }
};

/// d, m, nibbles.
struct Q4_1 {
    static constexpr Form kForm = unsigned_form(15, 0, Scales::Group, Minimum::Group);
    static constexpr int kBlockGroups = 1;
    static constexpr int kBlockBytes = 20;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int group, Panel& panel, Consumer& consumer) {
        load_two_halves(block, panel.ds[group][0], panel.ms[group]);
        Q4_0::put_nibbles(block.at(4), group, consumer);
    }
};

/// d, 32 fifth bits, nibbles.
struct Q5_0 {
    static constexpr Form kForm = unsigned_form(31, 16);
    static constexpr int kBlockGroups = 1;
    static constexpr int kBlockBytes = 22;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int group, Panel& panel, Consumer& consumer) {
        Float unused;
        load_two_halves(block, panel.ds[group][0], unused);
        put_five_bits(block.at(2), group, consumer);
    }

    template <class Consumer>
    COTERIE_INLINE static void put_five_bits(Strip codes, int group, Consumer& consumer) {
        const Int nibble = every_byte(15);
        const Int fifth_bit = every_byte(16);
        const BitBytes high(load_lanes(codes));
        Int bytes[4];
        load_columns_16(codes.at(4), bytes);
        auto sink = consumer.template chunk<1>(group);
        COTERIE_UNROLL
        for (int step = 0; step < 8; ++step) {
            const Int packed = step < 4 ? bytes[step % 4] : words_right<4>(bytes[step % 4]);
            sink.put(0, step, bits_or(bits_and(packed, nibble), smaller_bytes(high.step(step), fifth_bit)));
        }
        sink.finish();
    }
};

/// d, m, 32 fifth bits, nibbles.
struct Q5_1 {
    static constexpr Form kForm = unsigned_form(31, 0, Scales::Group, Minimum::Group);
    static constexpr int kBlockGroups = 1;
    static constexpr int kBlockBytes = 24;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int group, Panel& panel, Consumer& consumer) {
        load_two_halves(block, panel.ds[group][0], panel.ms[group]);
        Q5_0::put_five_bits(block.at(4), group, consumer);
    }
};

/// d, 32 signed bytes.
struct Q8_0 {
    static constexpr Form kForm = signed_form(128);
    static constexpr int kBlockGroups = 1;
    static constexpr int kBlockBytes = 34;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int group, Panel& panel, Consumer& consumer) {
        Float unused;
        load_two_halves(block, panel.ds[group][0], unused);
        auto sink = consumer.template chunk<1>(group);
        COTERIE_UNROLL
        for (int half = 0; half < 2; ++half) {
            Int bytes[4];
            load_columns_16(block.at(2 + 16 * half), bytes);
            COTERIE_UNROLL
            for (int c = 0; c < 4; ++c) sink.put(0, 4 * half + c, bytes[c]);
        }
        sink.finish();
    }
};

/// Puts the table's values of 16 bytes of nibbles.
template <class Consumer>
COTERIE_INLINE void put_table_nibbles(Strip nibbles, Int table, int group, Consumer& consumer) {
    const Int nibble = every_byte(15);
    Int bytes[4];
    load_columns_16(nibbles, bytes);
    auto sink = consumer.template chunk<1>(group);
    COTERIE_UNROLL
    for (int c = 0; c < 4; ++c) sink.put(0, c, shuffle_bytes(table, bits_and(bytes[c], nibble)));
    COTERIE_UNROLL
    for (int c = 0; c < 4; ++c) {
        sink.put(0, 4 + c, shuffle_bytes(table, bits_and(words_right<4>(bytes[c]), nibble)));
    }
    sink.finish();
}

/// d, nibbles that index a table.
struct IQ4_NL {
    static constexpr Form kForm = signed_form(kLargestIq4Value);
    static constexpr int kBlockGroups = 1;
    static constexpr int kBlockBytes = 18;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int group, Panel& panel, Consumer& consumer) {
        Float unused;
        load_two_halves(block, panel.ds[group][0], unused);
        put_table_nibbles(block.at(2), byte_table(kIq4Values), group, consumer);
    }
};

/// An exponent e, FP4 codes; the scale is 2^(e - 128).
struct MXFP4 {
    static constexpr Form kForm = unsigned_form(kLargestFp4PlusTwelve, 12);
    static constexpr int kBlockGroups = 1;
    static constexpr int kBlockBytes = 17;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int group, Panel& panel, Consumer& consumer) {
        panel.ds[group][0] = half_of_e8m0(bits_and(load_lanes(block), every_lane(0xff)));
        put_table_nibbles(block.at(1), byte_table(kFp4PlusTwelve), group, consumer);
    }
};

}  // namespace coterie::cpu::matmul::COTERIE_ISA
