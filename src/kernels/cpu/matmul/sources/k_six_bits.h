#pragma once

#include "kernels/cpu/matmul/panel.h"

namespace coterie::cpu::matmul::COTERIE_ISA {

/// 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed scales (one for each 16 values), d. Each
/// half of 128 values takes 64 + 32 bytes: byte l and byte l + 32 of the nibbles and byte l of the pairs hold
/// values l, l + 32, l + 64 and l + 96.
struct Q6_K {
    static constexpr Form kForm = unsigned_form(63, 32, Scales::Half);
    static constexpr int kBlockGroups = 8;
    static constexpr int kBlockBytes = 210;

    template <class Consumer>
    COTERIE_INLINE static void unpack(Strip block, int, Panel& panel, Consumer& consumer) {
        unpack_scales(block, panel);
        for (int half = 0; half < 2; ++half) {
            auto sink = consumer.template chunk<4>(4 * half);
            COTERIE_UNROLL
            for (int l = 0; l < 32; l += 16) {
                Int low[4];
                Int low32[4];
                Int high[4];
                load_columns_16(block.at(64 * half + l), low);
                load_columns_16(block.at(64 * half + 32 + l), low32);
                load_columns_16(block.at(128 + 32 * half + l), high);
                COTERIE_UNROLL
                for (int c = 0; c < 4; ++c) put(sink, l / 4 + c, low[c], low32[c], high[c]);
            }
            sink.finish();
        }
    }

  private:
    COTERIE_INLINE static void unpack_scales(Strip block, Panel& panel) {
        Int scales[4];
        load_columns_16(block.at(192), scales);
        Float last_scales;
        Float d;
        load_two_halves(block.at(206), last_scales, d);
        COTERIE_UNROLL
        for (int g = 0; g < kPanelGroups; ++g) {
            panel.ds[g][0] = d;
            panel.half_scales[g].template set<kForm.offset>(scales[g / 2], 2 * (g % 2));
        }
    }

    template <class Sink>
    COTERIE_INLINE static void put(Sink& sink, int step, Int low, Int low32, Int high) {
        const Int nibble = every_byte(15);
        const Int top_pair = every_byte(48);
        sink.put(0, step, bits_or(bits_and(low, nibble), bits_and(words_left<4>(high), top_pair)));
        sink.put(1, step, bits_or(bits_and(low32, nibble), bits_and(words_left<2>(high), top_pair)));
        sink.put(2, step, bits_or(bits_and(words_right<4>(low), nibble), bits_and(high, top_pair)));
        sink.put(3, step,
                 bits_or(bits_and(words_right<4>(low32), nibble), bits_and(words_right<2>(high), top_pair)));
    }
};

}  // namespace coterie::cpu::matmul::COTERIE_ISA
