#pragma once

#include "kernels/cpu/matmul/panel.h"
#include "kernels/cpu/matmul/sources/sign_bytes.h"
#include "quant/codebooks/codebooks.h"

// The IQ1, IQ2 and IQ3 types: codebook entries of 8 (IQ3: 4) values, with signs or a shift. All index
// arithmetic is done for all rows of the strip at once.

namespace coterie::cpu::matmul::COTERIE_ISA {

/// Byte `byte` of each lane.
COTERIE_INLINE Int byte_of(Int lanes, int byte) {
    return bits_and(lanes_right(lanes, 8 * byte), every_lane(255));
}

/// Negates values 4 * step .. 4 * step + 3 of a group whose 32 sign bits are in `signs`.
COTERIE_INLINE Int apply_signs(Int codes, Int signs, int step) {
    const int byte = step / 2;
    const Int copies = shuffle_bytes(signs, lane_pattern(byte, byte, byte, byte));
    const Int selected = every_lane(static_cast<int>(step % 2 == 0 ? 0x08040201u : 0x80402010u));
    return negate_bytes(codes, copies, selected);
}

/// d times a power of two, at the front of the block.
COTERIE_INLINE Float load_scale(Strip block, float factor) {
    Float d;
    Float unused;
    load_two_halves(block, d, unused);
    return multiply(d, every_float(factor));
}

/// d * (2 s + 1), s in the top four bits of each lane.
COTERIE_INLINE Float scale_of_top_bits(Float d, Int lanes) {
    return multiply(d, to_float(bits_or(lanes_left<1>(lanes_right<28>(lanes)), every_lane(1))));
}

/// Puts the four entries of 8 values of a group; `entry` holds each entry's index.
template <class Sink>
COTERIE_INLINE void put_signed_entries(Sink& sink, const std::int8_t* codebook, const Int entry[4],
                                       Int signs) {
    COTERIE_UNROLL
    for (int l = 0; l < 4; ++l) {
        Int codes[2];
        look_up_8(codebook, entry[l], codes);
        sink.put(0, 2 * l, apply_signs(codes[0], signs, 2 * l));
        sink.put(0, 2 * l + 1, apply_signs(codes[1], signs, 2 * l + 1));
    }
}

/// d; per group 4 entries, then 28 bits of signs and the scale.
struct IQ2_XXS {
    static constexpr Form kForm = signed_form(43);
    static constexpr int kBlockGroups = 8;
    static constexpr int kBlockBytes = 66;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int, Panel& panel, Consumer& consumer) {
        const Float d = load_scale(block, 0.125f);
        for (int g = 0; g < kPanelGroups; ++g) {
            Int record[2];
            load_columns_8(block.at(2 + 8 * g), record);
            panel.ds[g][0] = scale_of_top_bits(d, record[1]);
            const Int entry[4] = {byte_of(record[0], 0), byte_of(record[0], 1), byte_of(record[0], 2),
                                  byte_of(record[0], 3)};
            auto sink = consumer.template chunk<1>(g);
            put_signed_entries(sink, blocks::kIq2XxsCodebook[0].data(), entry, four_sign_bytes(record[1]));
            sink.finish();
        }
    }
};

/// Sets the scales 2 s + 1 of each 16 values; nibble k of the eight bytes is that of the k-th 16 values.
template <Form kForm>
COTERIE_INLINE void set_nibble_scales(const Int bytes[2], Float d, Panel& panel) {
    const Int nibble = every_byte(15);
    COTERIE_UNROLL
    for (int g = 0; g < kPanelGroups; ++g) {
        const Int byte = byte_of(bytes[g / 4], g % 4);
        const Int pair = bits_or(bits_and(byte, nibble), bits_and(lanes_left<4>(byte), every_lane(0x0f00)));
        panel.ds[g][0] = d;
        panel.half_scales[g].template set<kForm.offset>(add_bytes(add_bytes(pair, pair), every_byte(1)), 0);
    }
}

/// d; per group 4 words of 9 bits of entry and 7 bits of signs; 8 bytes of scales.
struct IQ2_XS {
    static constexpr Form kForm = signed_form(43, Scales::Half);
    static constexpr int kBlockGroups = 8;
    static constexpr int kBlockBytes = 74;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int, Panel& panel, Consumer& consumer) {
        Int scales[2];
        load_columns_8(block.at(66), scales);
        set_nibble_scales<kForm>(scales, load_scale(block, 0.125f), panel);
        const Int nine_bits = every_lane(511);
        for (int g = 0; g < kPanelGroups; ++g) {
            Int words[2];
            load_columns_8(block.at(2 + 8 * g), words);
            const Int entry[4] = {
                bits_and(words[0], nine_bits), bits_and(lanes_right<16>(words[0]), nine_bits),
                bits_and(words[1], nine_bits), bits_and(lanes_right<16>(words[1]), nine_bits)};
            const Int signs = bits_or(shuffle_bytes(words_right<9>(words[0]), lane_pattern(0, 2, -1, -1)),
                                      shuffle_bytes(words_right<9>(words[1]), lane_pattern(-1, -1, 0, 2)));
            auto sink = consumer.template chunk<1>(g);
            put_signed_entries(sink, blocks::kIq2XsCodebook[0].data(), entry, even_sign_bytes(signs));
            sink.finish();
        }
    }
};

/// d; 32 low bytes of entries; 32 bytes of signs; 8 bytes of two high bits of four entries; 8 bytes of
/// scales.
struct IQ2_S {
    static constexpr Form kForm = signed_form(43, Scales::Half);
    static constexpr int kBlockGroups = 8;
    static constexpr int kBlockBytes = 82;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int, Panel& panel, Consumer& consumer) {
        Int high[2];
        Int scales[2];
        load_columns_8(block.at(66), high);
        load_columns_8(block.at(74), scales);
        set_nibble_scales<kForm>(scales, load_scale(block, 0.125f), panel);
        for (int g = 0; g < kPanelGroups; ++g) {
            const Int low = load_lanes(block.at(2 + 4 * g));
            const Int tops = lanes_left<8>(lanes_right(high[g / 4], 8 * (g % 4)));
            Int entry[4];
            COTERIE_UNROLL
            for (int l = 0; l < 4; ++l) {
                entry[l] = bits_or(byte_of(low, l), bits_and(lanes_right(tops, 2 * l), every_lane(0x300)));
            }
            auto sink = consumer.template chunk<1>(g);
            put_signed_entries(sink, blocks::kIq2SCodebook[0].data(), entry,
                               load_lanes(block.at(34 + 4 * g)));
            sink.finish();
        }
    }
};

/// d; per group 8 entries of 4 values; then per group 28 bits of signs and the scale.
struct IQ3_XXS {
    static constexpr Form kForm = signed_form(62);
    static constexpr int kBlockGroups = 8;
    static constexpr int kBlockBytes = 98;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int, Panel& panel, Consumer& consumer) {
        const Float d = load_scale(block, 0.25f);
        for (int g = 0; g < kPanelGroups; ++g) {
            Int entries[2];
            load_columns_8(block.at(2 + 8 * g), entries);
            const Int signs_and_scale = load_lanes(block.at(66 + 4 * g));
            panel.ds[g][0] = scale_of_top_bits(d, signs_and_scale);
            const Int signs = four_sign_bytes(signs_and_scale);
            auto sink = consumer.template chunk<1>(g);
            COTERIE_UNROLL
            for (int step = 0; step < 8; ++step) {
                const Int codes =
                    look_up_4(blocks::kIq3XxsCodebook[0].data(), byte_of(entries[step / 4], step % 4));
                sink.put(0, step, apply_signs(codes, signs, step));
            }
            sink.finish();
        }
    }
};

/// d; 64 low bytes of entries; 8 bytes of their ninth bits; 32 bytes of signs; 4 bytes of scales.
struct IQ3_S {
    static constexpr Form kForm = signed_form(15);
    static constexpr int kBlockGroups = 8;
    static constexpr int kBlockBytes = 110;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int, Panel& panel, Consumer& consumer) {
        const Float d = load_scale(block, 1.0f);
        Int high[2];
        load_columns_8(block.at(66), high);
        const Int scales = load_lanes(block.at(106));
        for (int g = 0; g < kPanelGroups; ++g) {
            const Int nibble = bits_and(lanes_right(scales, 4 * g), every_lane(15));
            panel.ds[g][0] = multiply(d, to_float(bits_or(lanes_left<1>(nibble), every_lane(1))));
            Int low[2];
            load_columns_8(block.at(2 + 8 * g), low);
            const Int tops = lanes_left<8>(byte_of(high[g / 4], g % 4));
            const Int signs = load_lanes(block.at(74 + 4 * g));
            auto sink = consumer.template chunk<1>(g);
            COTERIE_UNROLL
            for (int step = 0; step < 8; ++step) {
                const Int top = bits_and(lanes_right(tops, step), every_lane(256));
                const Int entry = bits_or(byte_of(low[step / 4], step % 4), top);
                sink.put(0, step,
                         apply_signs(look_up_4(blocks::kIq3SCodebook[0].data(), entry), signs, step));
            }
            sink.finish();
        }
    }
};

/// IQ1 codes count eighths: 8 * entry + shift with entries and shifts of -1, 0 and 1. Plus 9 they are
/// unsigned.
inline constexpr int kEighthsOffset = 9;

/// `shifts` holds 9 + shift in each byte.
template <class Sink>
COTERIE_INLINE void put_eighths(Sink& sink, int l, Int entry, Int shifts) {
    Int values[2];
    look_up_8(blocks::kIq1Codebook[0].data(), entry, values);
    COTERIE_UNROLL
    for (int half = 0; half < 2; ++half) {
        const Int eightfold = bits_and(words_left<3>(values[half]), every_byte(0xf8));
        sink.put(0, 2 * l + half, add_bytes(eightfold, shifts));
    }
}

/// d; 32 low bytes of entries; 8 words: four times 3 high bits, 3 bits of scale, the shift's sign.
struct IQ1_S {
    static constexpr Form kForm = unsigned_form(18, kEighthsOffset);
    static constexpr int kBlockGroups = 8;
    static constexpr int kBlockBytes = 50;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int, Panel& panel, Consumer& consumer) {
        const Float d = load_scale(block, 0.125f);
        Int high[4];
        load_columns_16(block.at(34), high);
        for (int g = 0; g < kPanelGroups; ++g) {
            const Int low = load_lanes(block.at(2 + 4 * g));
            const Int word = lanes_right(high[g / 2], 16 * (g % 2));
            const Int scale = bits_and(lanes_right<12>(word), every_lane(7));
            panel.ds[g][0] = multiply(d, to_float(bits_or(lanes_left<1>(scale), every_lane(1))));
            // 10 for a shift of +1; twice the sign bit less for -1.
            const Int sign =
                shuffle_bytes(bits_and(lanes_right<14>(word), every_lane(2)), lane_pattern(0, 0, 0, 0));
            const Int shifts = subtract_bytes(every_byte(kEighthsOffset + 1), sign);
            auto sink = consumer.template chunk<1>(g);
            COTERIE_UNROLL
            for (int l = 0; l < 4; ++l) {
                const Int top = bits_and(lanes_left<8>(lanes_right(word, 3 * l)), every_lane(0x700));
                put_eighths(sink, l, bits_or(byte_of(low, l), top), shifts);
            }
            sink.finish();
        }
    }
};

/// 32 low bytes of entries; 32 nibbles of 3 high bits and the shift's sign; 4 words of four 3-bit scales and
/// a quarter of d.
struct IQ1_M {
    static constexpr Form kForm = unsigned_form(18, kEighthsOffset, Scales::Half);
    static constexpr int kBlockGroups = 8;
    static constexpr int kBlockBytes = 56;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int, Panel& panel, Consumer& consumer) {
        unpack_scales(block, panel);
        Int high[4];
        load_columns_16(block.at(32), high);
        for (int g = 0; g < kPanelGroups; ++g) {
            const Int low = load_lanes(block.at(4 * g));
            const Int nibbles = lanes_right(high[g / 2], 16 * (g % 2));
            auto sink = consumer.template chunk<1>(g);
            COTERIE_UNROLL
            for (int l = 0; l < 4; ++l) {
                const Int nibble = lanes_right(nibbles, 4 * l);
                const Int top = bits_and(lanes_left<8>(nibble), every_lane(0x700));
                const Int sign =
                    shuffle_bytes(bits_and(lanes_right<2>(nibble), every_lane(2)), lane_pattern(0, 0, 0, 0));
                const Int shifts = subtract_bytes(every_byte(kEighthsOffset + 1), sign);
                put_eighths(sink, l, bits_or(byte_of(low, l), top), shifts);
            }
            sink.finish();
        }
    }

  private:
    COTERIE_INLINE static void unpack_scales(Strip block, Panel& panel) {
        Int words[2];
        load_columns_8(block.at(48), words);
        const Int d_bits = bits_or(bits_or(bits_and(lanes_right<12>(words[0]), every_lane(0x000f)),
                                           bits_and(lanes_right<24>(words[0]), every_lane(0x00f0))),
                                   bits_or(bits_and(lanes_right<4>(words[1]), every_lane(0x0f00)),
                                           bits_and(lanes_right<16>(words[1]), every_lane(0xf000))));
        const Float d = multiply(halves_to_float(d_bits), every_float(0.125f));
        COTERIE_UNROLL
        for (int g = 0; g < kPanelGroups; ++g) {
            const Int bits = lanes_right(words[g / 4], 16 * (g / 2 % 2) + 6 * (g % 2));
            // 2 s + 1 of each half in the two lowest bytes.
            const Int first = bits_and(lanes_left<1>(bits), every_lane(0x000e));
            const Int second = bits_and(lanes_left<6>(bits), every_lane(0x0e00));
            panel.ds[g][0] = d;
            panel.half_scales[g].template set<kForm.offset>(
                bits_or(bits_or(first, second), every_lane(0x0101)), 0);
        }
    }
};

}  // namespace coterie::cpu::matmul::COTERIE_ISA
