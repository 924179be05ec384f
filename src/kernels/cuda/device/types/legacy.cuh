#pragma once

#include "kernels/cuda/device/bits.cuh"
#include "kernels/cuda/device/group.cuh"

/// Blocks of 32 values: src/quant/types/legacy.h.
namespace coterie::cuda {

struct Q4_0 {
    static constexpr int kBlockBytes = 18;
    static constexpr int kGroups = 1;
    static constexpr Form kForm = Form::Plain;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned, unsigned w) {
        return less<8>(word_at<2>(block + 2 + 4 * (w & 3)) >> (w & 4) & 0x0f0f0f0f);
    }
    __device__ static uint4 half_words(const std::uint8_t* block, unsigned, unsigned half) {
        return each_word(quad_at<2>(block + 2),
                         [=](std::uint32_t w) { return less<8>(w >> 4 * half & 0x0f0f0f0f); });
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned) {
        return {.ds = {half_bits(half_word_at<2>(block))}};
    }
};

struct Q4_1 {
    static constexpr int kBlockBytes = 20;
    static constexpr int kGroups = 1;
    static constexpr Form kForm = Form::Minimum;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned, unsigned w) {
        return word_at<4>(block + 4 + 4 * (w & 3)) >> (w & 4) & 0x0f0f0f0f;
    }
    __device__ static uint4 half_words(const std::uint8_t* block, unsigned, unsigned half) {
        return each_word(quad_at<4>(block + 4), [=](std::uint32_t w) { return w >> 4 * half & 0x0f0f0f0f; });
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned) {
        const std::uint32_t head = word_at<4>(block);
        return {.ds = {half_bits(head)}, .ms = half_bits(head >> 16)};
    }
};

struct Q5_0 {
    static constexpr int kBlockBytes = 22;
    static constexpr int kGroups = 1;
    static constexpr Form kForm = Form::Plain;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned, unsigned w) {
        const std::uint32_t low = word_at<2>(block + 6 + 4 * (w & 3)) >> (w & 4) & 0x0f0f0f0f;
        return less<16>(low | spread_bits(word_at<2>(block + 2) >> 4 * w) << 4);
    }
    __device__ static uint4 half_words(const std::uint8_t* block, unsigned, unsigned half) {
        std::uint32_t high = word_at<2>(block + 2) >> 16 * half;
        return each_word(quad_at<2>(block + 6), [&](std::uint32_t w) {
            const std::uint32_t bits = spread_bits(high) << 4;
            high >>= 4;
            return less<16>((w >> 4 * half & 0x0f0f0f0f) | bits);
        });
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned) {
        return {.ds = {half_bits(half_word_at<2>(block))}};
    }
};

struct Q5_1 {
    static constexpr int kBlockBytes = 24;
    static constexpr int kGroups = 1;
    static constexpr Form kForm = Form::Minimum;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned, unsigned w) {
        const std::uint32_t low = word_at<4>(block + 8 + 4 * (w & 3)) >> (w & 4) & 0x0f0f0f0f;
        return low | spread_bits(word_at<4>(block + 4) >> 4 * w) << 4;
    }
    __device__ static uint4 half_words(const std::uint8_t* block, unsigned, unsigned half) {
        std::uint32_t high = word_at<4>(block + 4) >> 16 * half;
        return each_word(quad_at<8>(block + 8), [&](std::uint32_t w) {
            const std::uint32_t bits = spread_bits(high) << 4;
            high >>= 4;
            return (w >> 4 * half & 0x0f0f0f0f) | bits;
        });
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned) {
        const std::uint32_t head = word_at<4>(block);
        return {.ds = {half_bits(head)}, .ms = half_bits(head >> 16)};
    }
};

struct Q8_0 {
    static constexpr int kBlockBytes = 34;
    static constexpr int kGroups = 1;
    static constexpr Form kForm = Form::Plain;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned, unsigned w) {
        return word_at<2>(block + 2 + 4 * w);
    }
    __device__ static uint4 half_words(const std::uint8_t* block, unsigned, unsigned half) {
        return quad_at<2>(block + 2 + 16 * half);
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned) {
        return {.ds = {half_bits(half_word_at<2>(block))}};
    }
};

}  // namespace coterie::cuda
