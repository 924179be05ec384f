#pragma once

#include "kernels/cpu/matmul/form.h"
#include "kernels/cpu/matmul/vectors_avx2.h"

namespace coterie::cpu::matmul::avx2 {

/// The integer scales of a group's two halves, as the words that `dot_words` takes.
struct HalfScales {
    Int scale[2];  ///< the half's scale in both words of a lane
    Int offset;    ///< offset * scale of each half

    /// Bytes `first_byte` and the next of each lane are the two signed scales.
    template <int kOffset>
    COTERIE_INLINE void set(Int bytes, int first_byte) {
        const int next = first_byte + 1;
        scale[0] = words_right_signed<8>(shuffle_bytes(bytes, lane_pattern(-1, first_byte, -1, first_byte)));
        scale[1] = words_right_signed<8>(shuffle_bytes(bytes, lane_pattern(-1, next, -1, next)));
        if constexpr (kOffset != 0) {
            const Int pair = shuffle_bytes(bytes, lane_pattern(-1, first_byte, -1, next));
            offset = _mm256_mullo_epi16(words_right_signed<8>(pair), every_word(kOffset));
        }
    }
};

/// The integer sums of one group of 32 values of each row of a strip with one token.
template <Form kForm>
class GroupSum {
  public:
    static constexpr bool kUsesHalfSums = kForm.offset != 0;

    /// Codes as a panel keeps them.
    COTERIE_INLINE static Int prepare(Int codes) { return codes; }

    /// Adds the products of codes 4 * `step` .. 4 * `step` + 3 of each row; steps come in ascending order.
    COTERIE_INLINE void add(int step, Int codes, Int activation, const HalfScales& scales) {
        const int term = step % kForm.terms;
        const Int products = multiply_pairs(codes, activation);
        words_ = term == 0 ? products : add_words(words_, products);
        keep_order(words_);
        if (term != kForm.terms - 1) return;
        const int half = kForm.scales == Scales::TwoUpdates ? step / 4 : 0;
        const bool is_first = step == term || (kForm.scales == Scales::TwoUpdates && step == 4 + term);
        const Int factor = kForm.scales == Scales::Half ? scales.scale[step / 4] : every_word(1);
        const Int sums = dot_words(words_, factor);
        lanes_[half] = is_first ? sums : add_lanes(lanes_[half], sums);
    }

    /// The exact integer of the group (of half `half` where each has its own update).
    COTERIE_INLINE Float value(Int half_sums, const HalfScales& scales, int half = 0) const {
        if constexpr (kForm.offset == 0) return to_float(lanes_[half]);
        if constexpr (kForm.scales == Scales::Half) {
            return to_float(subtract_lanes(lanes_[0], dot_words(half_sums, scales.offset)));
        }
        if constexpr (kForm.scales == Scales::TwoUpdates) {
            const Int offset = every_lane(half == 0 ? kForm.offset : kForm.offset << 16);
            return to_float(subtract_lanes(lanes_[half], dot_words(half_sums, offset)));
        }
        return to_float(subtract_lanes(lanes_[0], dot_words(half_sums, every_word(kForm.offset))));
    }

  private:
    COTERIE_INLINE static Int multiply_pairs(Int codes, Int activation) {
        if constexpr (kForm.is_signed) {
            // The unsigned operand is |code|, so that -128 fits too.
            return _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(activation, codes));
        }
        return _mm256_maddubs_epi16(codes, activation);
    }

    Int words_;
    Int lanes_[2];
};

}  // namespace coterie::cpu::matmul::avx2
