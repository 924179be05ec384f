#pragma once

#include "kernels/cuda/device/bits.cuh"
#include "kernels/cuda/device/group.cuh"

/// Types whose 4-bit codes look up one of 16 values: src/quant/types/four_bit_tables.h.
namespace coterie::cuda {

/// -127 -104 -83 -65, -49 -35 -22 -10, 1 13 25 38, 53 69 89 113
__device__ constexpr NibbleTable kIq4Table = {{0xbfad9881, 0xf6eaddcf, 0x26190d01, 0x71594535}};
/// 0 1 2 3, 4 6 8 12, 0 -1 -2 -3, -4 -6 -8 -12
__device__ constexpr NibbleTable kFp4Table = {{0x03020100, 0x0c080604, 0xfdfeff00, 0xf4f8fafc}};

struct IQ4_NL {
    static constexpr int kBlockBytes = 18;
    static constexpr int kGroups = 1;
    static constexpr Form kForm = Form::Plain;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned, unsigned w) {
        return look_up(kIq4Table, word_at<2>(block + 2 + 4 * (w & 3)) >> (w & 4) & 0x0f0f0f0f);
    }
    __device__ static uint4 half_words(const std::uint8_t* block, unsigned, unsigned half) {
        return each_word(quad_at<2>(block + 2),
                         [=](std::uint32_t w) { return look_up(kIq4Table, w >> 4 * half & 0x0f0f0f0f); });
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned) {
        return {.ds = {half_bits(half_word_at<2>(block))}};
    }
};

struct IQ4_XS {
    static constexpr int kBlockBytes = 136;
    static constexpr int kGroups = 8;
    static constexpr Form kForm = Form::Plain;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        return look_up(kIq4Table, word_at<4>(block + 8 + 16 * g + 4 * (w & 3)) >> (w & 4) & 0x0f0f0f0f);
    }
    __device__ static uint4 half_words(const std::uint8_t* block, unsigned g, unsigned half) {
        return each_word(quad_at<8>(block + 8 + 16 * g),
                         [=](std::uint32_t w) { return look_up(kIq4Table, w >> 4 * half & 0x0f0f0f0f); });
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned g) {
        const uint2 head = *reinterpret_cast<const uint2*>(block);
        const auto scale = static_cast<int>((head.y >> 4 * g & 15) | (head.x >> (16 + 2 * g) & 3) << 4);
        return {.ds = {__fmul_rn(half_bits(head.x), static_cast<float>(scale - 32))}};
    }
};

struct MXFP4 {
    static constexpr int kBlockBytes = 17;
    static constexpr int kGroups = 1;
    static constexpr Form kForm = Form::Plain;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned, unsigned w) {
        return look_up(kFp4Table, word_at<1>(block + 1 + 4 * (w & 3)) >> (w & 4) & 0x0f0f0f0f);
    }
    /// 2^(e - 128); the two smallest are subnormal.
    __device__ static uint4 half_words(const std::uint8_t* block, unsigned, unsigned half) {
        return each_word(quad_at<1>(block + 1),
                         [=](std::uint32_t w) { return look_up(kFp4Table, w >> 4 * half & 0x0f0f0f0f); });
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned) {
        const std::uint32_t e = block[0];
        return {.ds = {__uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23)}};
    }
};

struct NVFP4 {
    static constexpr int kBlockBytes = 36;
    static constexpr int kGroups = 2;
    static constexpr Form kForm = Form::TwoScale;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        const std::uint8_t* half = block + 4 + 16 * g + 8 * (w / 4);
        return look_up(kFp4Table, word_at<4>(half + 4 * (w & 1)) >> 2 * (w & 2) & 0x0f0f0f0f);
    }
    __device__ static uint4 half_words(const std::uint8_t* block, unsigned g, unsigned half) {
        const std::uint8_t* bytes = block + 4 + 16 * g + 8 * half;
        const std::uint32_t a = word_at<4>(bytes);
        const std::uint32_t b = word_at<4>(bytes + 4);
        return each_word(uint4{a, b, a >> 4, b >> 4},
                         [](std::uint32_t w) { return look_up(kFp4Table, w & 0x0f0f0f0f); });
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned g) {
        return {.ds = {half_of_ue4m3(block[2 * g]), half_of_ue4m3(block[2 * g + 1])}};
    }

  private:
    __device__ static float half_of_ue4m3(std::uint32_t code) {
        const std::uint32_t exponent = code >> 3 & 15;
        const std::uint32_t mantissa = code & 7;
        if ((code & 0x7f) == 0x7f) return 0.0f;
        if (exponent == 0) return __fmul_rn(static_cast<float>(mantissa), 0x1p-10f);
        return __uint_as_float((exponent + 119) << 23 | mantissa << 20);
    }
};

}  // namespace coterie::cuda
