#pragma once

#include "kernels/cuda/device/bits.cuh"
#include "kernels/cuda/device/group.cuh"

/// Super-blocks of 256 values: src/quant/types/k_quants.h.
namespace coterie::cuda {

struct Q2_K {
    static constexpr int kBlockBytes = 84;
    static constexpr int kGroups = 8;
    static constexpr Form kForm = Form::HalfMinima;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        return word_at<4>(block + 16 + 32 * (g / 4) + 4 * w) >> 2 * (g & 3) & 0x03030303;
    }
    __device__ static uint4 half_words(const std::uint8_t* block, unsigned g, unsigned half) {
        return each_word(quad_at<4>(block + 16 + 32 * (g / 4) + 16 * half),
                         [=](std::uint32_t w) { return w >> 2 * (g & 3) & 0x03030303; });
    }
    static constexpr int kPlanes = 1;
    __device__ static uint4 plane(const std::uint8_t* block, unsigned g, unsigned half, int) {
        return masked(quad_at<4>(block + 16 + 32 * (g / 4) + 16 * half), 0x03030303u << 2 * (g & 3));
    }
    __device__ static int sum_of_planes(const int (&sums)[kPlanes], unsigned g, int) {
        return sums[0] >> 2 * (g & 3);
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned g) {
        const std::uint32_t pair = half_word_at<2>(block + 2 * g);
        const std::uint32_t tail = word_at<4>(block + 80);
        return {.ds = {half_bits(tail)},
                .ms = -half_bits(tail >> 16),
                .half_scales = {static_cast<int>(pair & 15), static_cast<int>(pair >> 8 & 15)},
                .half_minima = {static_cast<int>(pair >> 4 & 15), static_cast<int>(pair >> 12 & 15)}};
    }
};

struct Q3_K {
    static constexpr int kBlockBytes = 110;
    static constexpr int kGroups = 8;
    static constexpr Form kForm = Form::HalfScaled;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        const std::uint32_t low = word_at<2>(block + 32 + 32 * (g / 4) + 4 * w) >> 2 * (g & 3) & 0x03030303;
        const std::uint32_t high = word_at<2>(block + 4 * w) >> g & 0x01010101;
        return less<4>(low | high << 2);
    }
    __device__ static uint4 half_words(const std::uint8_t* block, unsigned g, unsigned half) {
        return each_word(quad_at<2>(block + 32 + 32 * (g / 4) + 16 * half), quad_at<2>(block + 16 * half),
                         [=](std::uint32_t low, std::uint32_t high) {
                             return less<4>((low >> 2 * (g & 3) & 0x03030303) | (high >> g & 0x01010101)
                                                                                    << 2);
                         });
    }
    static constexpr int kPlanes = 2;
    __device__ static uint4 plane(const std::uint8_t* block, unsigned g, unsigned half, int p) {
        return p == 0 ? masked(inner_quad_at<2>(block + 32 + 32 * (g / 4) + 16 * half),
                               0x03030303u << 2 * (g & 3))
                      : masked(inner_quad_at<2>(block + 16 * half), 0x01010101u << g);
    }
    __device__ static int sum_of_planes(const int (&sums)[kPlanes], unsigned g, int quants_sum) {
        return (sums[0] >> 2 * (g & 3)) + 4 * (sums[1] >> g) - 4 * quants_sum;
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned g) {
        return {.ds = {half_bits(half_word_at<2>(block + 108))},
                .half_scales = {six_bits(block + 96, 2 * g) - 32, six_bits(block + 96, 2 * g + 1) - 32}};
    }

  private:
    /// Four low bits as nibbles of the first 8 bytes (all low ones first), two high bits in the last 4.
    __device__ static int six_bits(const std::uint8_t* scales, unsigned i) {
        const int low = scales[i & 7] >> (i & 8 ? 4 : 0) & 15;
        return low | (scales[8 + (i & 3)] >> 2 * (i >> 2) & 3) << 4;
    }
};

/// What Q4_K and Q5_K begin with: two binary16 scales, then eight 6-bit scales and minima in twelve bytes.
__device__ __forceinline__ Scales scale_and_minimum(const std::uint8_t* block, unsigned g) {
    const uint4 head = *reinterpret_cast<const uint4*>(block);
    const unsigned shift = 8 * (g & 3);
    const std::uint32_t a = head.y >> shift;
    const std::uint32_t b = head.z >> shift;
    const std::uint32_t c = head.w >> shift;
    const std::uint32_t scale = g < 4 ? a & 63 : (c & 15) | (a >> 2 & 48);
    const std::uint32_t minimum = g < 4 ? b & 63 : (c >> 4 & 15) | (b >> 2 & 48);
    return {.ds = {__fmul_rn(half_bits(head.x), static_cast<float>(scale))},
            .ms = -__fmul_rn(half_bits(head.x >> 16), static_cast<float>(minimum))};
}

struct Q4_K {
    static constexpr int kBlockBytes = 144;
    static constexpr int kGroups = 8;
    static constexpr Form kForm = Form::Minimum;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        return word_at<4>(block + 16 + 32 * (g / 2) + 4 * w) >> 4 * (g & 1) & 0x0f0f0f0f;
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned g) {
        return scale_and_minimum(block, g);
    }
    static constexpr int kPlanes = 1;
    __device__ static uint4 plane(const std::uint8_t* block, unsigned g, unsigned half, int) {
        return masked(quad_at<16>(block + 16 + 32 * (g / 2) + 16 * half), 0x0f0f0f0fu << 4 * (g & 1));
    }
    __device__ static int sum_of_planes(const int (&sums)[kPlanes], unsigned g, int) {
        return sums[0] >> 4 * (g & 1);
    }
    __device__ static uint4 half_words(const std::uint8_t* block, unsigned g, unsigned half) {
        return each_word(quad_at<16>(block + 16 + 32 * (g / 2) + 16 * half),
                         [=](std::uint32_t w) { return w >> 4 * (g & 1) & 0x0f0f0f0f; });
    }
};

struct Q5_K {
    static constexpr int kBlockBytes = 176;
    static constexpr int kGroups = 8;
    static constexpr Form kForm = Form::Minimum;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        return code(word_at<4>(block + 48 + 32 * (g / 2) + 4 * w), word_at<4>(block + 16 + 4 * w), g);
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned g) {
        return scale_and_minimum(block, g);
    }
    static constexpr int kPlanes = 2;
    __device__ static uint4 plane(const std::uint8_t* block, unsigned g, unsigned half, int p) {
        return p == 0 ? masked(quad_at<16>(block + 48 + 32 * (g / 2) + 16 * half), 0x0f0f0f0fu << 4 * (g & 1))
                      : masked(quad_at<16>(block + 16 + 16 * half), 0x01010101u << g);
    }
    __device__ static int sum_of_planes(const int (&sums)[kPlanes], unsigned g, int) {
        return (sums[0] >> 4 * (g & 1)) + 16 * (sums[1] >> g);
    }
    __device__ static uint4 half_words(const std::uint8_t* block, unsigned g, unsigned half) {
        return each_word(quad_at<16>(block + 48 + 32 * (g / 2) + 16 * half),
                         quad_at<16>(block + 16 + 16 * half),
                         [=](std::uint32_t low, std::uint32_t high) { return code(low, high, g); });
    }

  private:
    __device__ static std::uint32_t code(std::uint32_t low, std::uint32_t high, unsigned g) {
        return (low >> 4 * (g & 1) & 0x0f0f0f0f) | (high >> g & 0x01010101) << 4;
    }
};

struct Q6_K {
    static constexpr int kBlockBytes = 210;
    static constexpr int kGroups = 8;
    static constexpr Form kForm = Form::HalfScaled;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        const std::uint8_t* low = block + 64 * (g / 4) + 32 * (g & 1) + 4 * w;
        const std::uint8_t* high = block + 128 + 32 * (g / 4) + 4 * w;
        return less<32>((word_at<2>(low) >> 2 * (g & 2) & 0x0f0f0f0f) |
                        (word_at<2>(high) >> 2 * (g & 3) & 0x03030303) << 4);
    }
    __device__ static uint4 half_words(const std::uint8_t* block, unsigned g, unsigned half) {
        return each_word(
            quad_at<2>(block + 64 * (g / 4) + 32 * (g & 1) + 16 * half),
            quad_at<2>(block + 128 + 32 * (g / 4) + 16 * half), [=](std::uint32_t low, std::uint32_t high) {
                return less<32>((low >> 2 * (g & 2) & 0x0f0f0f0f) | (high >> 2 * (g & 3) & 0x03030303) << 4);
            });
    }
    static constexpr int kPlanes = 2;
    __device__ static uint4 plane(const std::uint8_t* block, unsigned g, unsigned half, int p) {
        return p == 0 ? masked(inner_quad_at<2>(block + 64 * (g / 4) + 32 * (g & 1) + 16 * half),
                               0x0f0f0f0fu << 2 * (g & 2))
                      : masked(inner_quad_at<2>(block + 128 + 32 * (g / 4) + 16 * half),
                               0x03030303u << 2 * (g & 3));
    }
    __device__ static int sum_of_planes(const int (&sums)[kPlanes], unsigned g, int quants_sum) {
        return (sums[0] >> 2 * (g & 2)) + 16 * (sums[1] >> 2 * (g & 3)) - 32 * quants_sum;
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned g) {
        return {.ds = {half_bits(half_word_at<2>(block + 208))},
                .half_scales = {static_cast<std::int8_t>(block[192 + 2 * g]),
                                static_cast<std::int8_t>(block[193 + 2 * g])}};
    }
};

}  // namespace coterie::cuda
