#pragma once

#include "kernels/cpu/matmul/target.h"

// The signs of the IQ2 and IQ3 types, unpacked for many values at once.

namespace coterie::cpu::matmul::COTERIE_ISA {

/// Bytes of 7 sign bits, each completed by the bit that makes the number of set bits even.
COTERIE_INLINE Int even_sign_bytes(Int seven_bits) {
    alignas(16) static constexpr std::int8_t kOdd[16] = {0,    -128, -128, 0,    -128, 0,    0,    -128,
                                                         -128, 0,    0,    -128, 0,    -128, -128, 0};
    const Int nibble = every_byte(15);
    const Int table = byte_table(kOdd);
    const Int low = shuffle_bytes(table, bits_and(seven_bits, nibble));
    const Int high = shuffle_bytes(table, bits_and(words_right<4>(seven_bits), nibble));
    return bits_or(seven_bits, bits_xor(low, high));
}

/// The four times 7 sign bits in the low 28 bits of each lane, as whole bytes.
COTERIE_INLINE Int four_sign_bytes(Int lanes) {
    const Int first = bits_and(lanes, every_lane(0x7f));
    const Int second = bits_and(lanes_left<1>(lanes), every_lane(0x7f00));
    const Int third = bits_and(lanes_left<2>(lanes), every_lane(0x7f0000));
    const Int fourth = bits_and(lanes_left<3>(lanes), every_lane(0x7f000000));
    return even_sign_bytes(bits_or(bits_or(first, second), bits_or(third, fourth)));
}

}  // namespace coterie::cpu::matmul::COTERIE_ISA
