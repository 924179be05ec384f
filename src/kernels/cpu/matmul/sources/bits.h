#pragma once

#include <cstdint>

#include "kernels/cpu/matmul/panel.h"

// What several types share in unpacking single bits and table codes.

namespace coterie::cpu::matmul::COTERIE_ISA {

/// 32 bits of each row, one for each value of a group, turned into a byte with one set bit or none.
class BitBytes {
  public:
    COTERIE_INLINE explicit BitBytes(Int lanes) : even_(words_left<4>(lanes)), odd_(lanes) {}

    /// Bytes for values 4 * step .. 4 * step + 3: one of the bits 4 to 7 is set where the value's bit is.
    COTERIE_INLINE Int step(int s) const {
        const int byte = s / 2;
        const Int copies = shuffle_bytes(s % 2 == 0 ? even_ : odd_, lane_pattern(byte, byte, byte, byte));
        return bits_and(copies, every_lane(static_cast<int>(0x80402010u)));
    }

  private:
    Int even_;  ///< the low nibble's bits moved to the high nibble
    Int odd_;
};

/// The bits of 2^(e - 128). As integers, those of the subnormals (e < 2) are the larger ones where they are
/// right.
COTERIE_INLINE Float half_of_e8m0(Int e) {
    const Int normal = lanes_left<23>(subtract_lanes(e, every_lane(1)));
    const Int subnormal = lanes_left<21>(add_lanes(e, every_lane(1)));
    return as_float(larger_lanes(normal, subnormal));
}

/// Doubled FP4 values plus 12, so that they are unsigned.
alignas(16) inline constexpr std::int8_t kFp4PlusTwelve[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                                               12, 11, 10, 9,  8,  6,  4,  0};
inline constexpr int kLargestFp4PlusTwelve = 24;

alignas(16) inline constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                           1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr int kLargestIq4Value = 127;

}  // namespace coterie::cpu::matmul::COTERIE_ISA
