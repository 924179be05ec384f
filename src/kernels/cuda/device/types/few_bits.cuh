#pragma once

#include "kernels/cuda/device/bits.cuh"
#include "kernels/cuda/device/group.cuh"

/// Types of one or two bits: src/quant/types/few_bits.h.
namespace coterie::cuda {

struct Q1_0 {
    static constexpr int kBlockBytes = 18;
    static constexpr int kGroups = 4;
    static constexpr Form kForm = Form::Plain;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        return less<1>(spread_bits(block[2 + 4 * g + w / 2] >> 4 * (w & 1)) << 1);
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned) {
        return {.ds = {half_bits(half_word_at<2>(block))}};
    }
};

struct Q2_0 {
    static constexpr int kBlockBytes = 18;
    static constexpr int kGroups = 2;
    static constexpr Form kForm = Form::Plain;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        return less<1>(spread_pairs(block[2 + 8 * g + w]));
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned) {
        return {.ds = {half_bits(half_word_at<2>(block))}};
    }
};

struct TQ1_0 {
    static constexpr int kBlockBytes = 54;
    static constexpr int kGroups = 8;
    static constexpr Form kForm = Form::Plain;
    /// Four values that stand in four neighbouring bytes, all as the same digit.
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        unsigned byte = 4 * w;
        unsigned digit = g;
        if (g == 7 && w >= 4) {
            byte = 48;
            digit = w - 4;
        } else if (g >= 5) {
            byte = 32 + 4 * (w & 3);
            digit = 2 * (g - 5) + w / 4;
        }
        return less<1>(digits(word_at<2>(block + byte), digit));
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned) {
        return {.ds = {half_bits(half_word_at<2>(block + 52))}};
    }

  private:
    /// A byte is a fraction b / 256 in base 3: times 3^n, its whole part dropped, times 3 leaves digit n.
    __device__ static std::uint32_t digits(std::uint32_t bytes, unsigned n) {
        constexpr std::uint32_t kEven = 0x00ff00ff;
        const std::uint32_t power = n == 0 ? 1 : n == 1 ? 3 : n == 2 ? 9 : n == 3 ? 27 : 81;
        const std::uint32_t even = ((bytes & kEven) * power & kEven) * 3 >> 8 & kEven;
        const std::uint32_t odd = ((bytes >> 8 & kEven) * power & kEven) * 3 & ~kEven;
        return even | odd;
    }
};

struct TQ2_0 {
    static constexpr int kBlockBytes = 66;
    static constexpr int kGroups = 8;
    static constexpr Form kForm = Form::Plain;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        return less<1>(word_at<2>(block + 32 * (g / 4) + 4 * w) >> 2 * (g & 3) & 0x03030303);
    }
    __device__ static uint4 half_words(const std::uint8_t* block, unsigned g, unsigned half) {
        return each_word(quad_at<2>(block + 32 * (g / 4) + 16 * half),
                         [=](std::uint32_t w) { return less<1>(w >> 2 * (g & 3) & 0x03030303); });
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned) {
        return {.ds = {half_bits(half_word_at<2>(block + 64))}};
    }
};

}  // namespace coterie::cuda
