#pragma once

#include "kernels/cpu/matmul/form.h"
#include "kernels/cpu/matmul/vectors_avx512.h"

namespace coterie::cpu::matmul::avx512 {

/// The integer scales of a group's two halves. As binary32, because every sum of theirs stays below 2^24 and
/// is exact.
struct HalfScales {
    Float scale[2];

    /// Bytes `first_byte` and the next of each lane are the two signed scales.
    template <int kOffset>
    COTERIE_INLINE void set(Int bytes, int first_byte) {
        COTERIE_UNROLL
        for (int half = 0; half < 2; ++half) {
            const Int top = shuffle_bytes(bytes, lane_pattern(-1, -1, -1, first_byte + half));
            scale[half] = to_float(_mm512_srai_epi32(top, 24));
        }
    }
};

/// The integer sums of one group of 32 values of each row of a strip with one token, by VNNI: four products
/// of an unsigned code and a signed activation are added to each 32-bit lane.
template <Form kForm>
class GroupSum {
  public:
    static constexpr int kOffset = kForm.is_signed ? 128 : kForm.offset;
    static constexpr bool kUsesHalfSums = kOffset != 0;

    /// Codes as a panel keeps them: unsigned.
    COTERIE_INLINE static Int prepare(Int codes) {
        if constexpr (kForm.is_signed) return bits_xor(codes, every_byte(128));
        return codes;
    }

    /// Adds the products of codes 4 * `step` .. 4 * `step` + 3 of each row; steps come in ascending order.
    COTERIE_INLINE void add(int step, Int codes, Int activation, const HalfScales&) {
        const int half = kHasHalves ? step / 4 : 0;
        const bool is_first = step == 0 || (kHasHalves && step == 4);
        lanes_[half] = _mm512_dpbusd_epi32(is_first ? zero() : lanes_[half], codes, activation);
    }

    /// The exact integer of the group (of half `half` where each has its own update).
    COTERIE_INLINE Float value(Int half_sums, const HalfScales& scales, int half = 0) const {
        if constexpr (kForm.scales == Scales::Half) {
            const Float second = multiply(half_value(half_sums, 1), scales.scale[1]);
            return multiply_add(half_value(half_sums, 0), scales.scale[0], second);
        }
        if constexpr (kForm.scales == Scales::TwoUpdates) return half_value(half_sums, half);
        if constexpr (kOffset == 0) return to_float(lanes_[0]);
        return to_float(subtract_lanes(lanes_[0], dot_words(half_sums, every_word(kOffset))));
    }

  private:
    static constexpr bool kHasHalves = kForm.scales != Scales::Group;

    COTERIE_INLINE Float half_value(Int half_sums, int half) const {
        if constexpr (kOffset == 0) return to_float(lanes_[half]);
        const Int offset = every_lane(half == 0 ? kOffset : kOffset << 16);
        return to_float(subtract_lanes(lanes_[half], dot_words(half_sums, offset)));
    }

    Int lanes_[2];
};

}  // namespace coterie::cpu::matmul::avx512
