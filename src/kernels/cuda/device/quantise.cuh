#pragma once

#include <cstdint>

#include "kernels/cuda/activations.h"
#include "kernels/cuda/device/lanes.cuh"

/// The rule for activations (src/quant/activation.cpp): one warp quantises one group, a value a lane.
namespace coterie::cuda {

struct QuantisedGroup {
    std::int8_t quant;  ///< this lane's
    float scale;        ///< the same in all lanes, as what follows
    int half_sums[2];
};

/// Largest magnitudes are compared as bit patterns, so that NaN and infinity win.
__device__ __forceinline__ QuantisedGroup quantise_group(float value) {
    constexpr std::uint32_t kInfinity = 0x7f800000;
    constexpr float kSmallestMaximum = 1e-35f;
    const std::uint32_t bits = warp_maximum(__float_as_uint(value) & 0x7fffffffu);
    const float maximum = __uint_as_float(bits);
    QuantisedGroup group{0, 0.0f, {0, 0}};
    if (bits >= kInfinity) {
        group.scale = __uint_as_float(0x7fc00000);
    } else if (maximum >= kSmallestMaximum) {
        group.scale = __fdiv_rn(maximum, 127.0f);
        group.quant = static_cast<std::int8_t>(__float2int_rn(__fmul_rn(value, __fdiv_rn(127.0f, maximum))));
    }
    // Both halves in one sum: each quant is raised above 0, and sixteen of them stay below 2^16.
    constexpr int kRaise = 128;
    const unsigned raised = static_cast<unsigned>(group.quant + kRaise);
    const unsigned sums = warp_sum(lane_index() < 16 ? raised : raised << 16);
    group.half_sums[0] = static_cast<int>(sums & 0xffff) - 16 * kRaise;
    group.half_sums[1] = static_cast<int>(sums >> 16) - 16 * kRaise;
    return group;
}

/// `quantise_group` of four groups by one warp: eight neighbouring lanes hold a group, four values each.
struct QuantisedQuad {
    std::uint32_t quants;  ///< this lane's, a byte each
    float scale;           ///< the same in all eight lanes, as what follows
    int half_sums[2];
};

__device__ __forceinline__ QuantisedQuad quantise_quad(const float4& values) {
    constexpr std::uint32_t kInfinity = 0x7f800000;
    constexpr float kSmallestMaximum = 1e-35f;
    constexpr std::uint32_t kOnes = 0x01010101;
    const auto magnitude = [](float value) { return __float_as_uint(value) & 0x7fffffffu; };
    std::uint32_t bits =
        max(max(magnitude(values.x), magnitude(values.y)), max(magnitude(values.z), magnitude(values.w)));
#pragma unroll
    for (int width = 4; width > 0; width /= 2) bits = max(bits, __shfl_xor_sync(kFullWarp, bits, width));
    const float maximum = __uint_as_float(bits);
    const bool ordinary = bits < kInfinity && maximum >= kSmallestMaximum;
    const float divisor = ordinary ? maximum : 1.0f;
    // Where it is 0, so is every quant: a product that is not a number becomes 0 as well.
    const float inverse = ordinary ? __fdiv_rn(127.0f, divisor) : 0.0f;
    const auto quant = [=](float value) {
        return static_cast<std::uint32_t>(__float2int_rn(__fmul_rn(value, inverse)));
    };
    QuantisedQuad quad{};
    quad.quants = __byte_perm(__byte_perm(quant(values.x), quant(values.y), 0x0040),
                              __byte_perm(quant(values.z), quant(values.w), 0x0040), 0x5410);
    quad.scale = ordinary            ? __fdiv_rn(divisor, 127.0f)
                 : bits >= kInfinity ? __uint_as_float(0x7fc00000)
                                     : 0.0f;
    int half = __dp4a(static_cast<int>(quad.quants), static_cast<int>(kOnes), 0);
    half += __shfl_xor_sync(kFullWarp, half, 1);
    half += __shfl_xor_sync(kFullWarp, half, 2);
    const int other = __shfl_xor_sync(kFullWarp, half, 4);
    const bool upper = lane_index() & 4;
    quad.half_sums[0] = upper ? other : half;
    quad.half_sums[1] = upper ? half : other;
    return quad;
}

/// Stores values i .. i + 3 of row t, by a lane that holds them.
__device__ __forceinline__ void store_quad(const ActivationBuffer& out, std::int64_t t, int i,
                                           const QuantisedQuad& quad) {
    const std::int64_t index = t * out.groups + i / 32;
    reinterpret_cast<std::uint32_t*>(out.quants)[index * 8 + i % 32 / 4] = quad.quants;
    if (i % 32 != 0) return;
    const float sum = static_cast<float>(quad.half_sums[0] + quad.half_sums[1]);
    reinterpret_cast<float2*>(out.scales)[index] = {quad.scale, __fmul_rn(quad.scale, sum)};
    reinterpret_cast<short2*>(out.half_sums)[index] = {static_cast<short>(quad.half_sums[0]),
                                                       static_cast<short>(quad.half_sums[1])};
}

/// Quantises and stores group g of token t; `value` is this lane's, +0 past the row's end.
__device__ __forceinline__ void store_group(const ActivationBuffer& out, std::int64_t t, std::int64_t g,
                                            float value) {
    const QuantisedGroup group = quantise_group(value);
    const std::int64_t index = t * out.groups + g;
    out.quants[index * 32 + lane_index()] = group.quant;
    if (lane_index() != 0) return;
    const float sum = static_cast<float>(group.half_sums[0] + group.half_sums[1]);
    out.scales[2 * index] = group.scale;
    out.scales[2 * index + 1] = __fmul_rn(group.scale, sum);
    out.half_sums[2 * index] = static_cast<std::int16_t>(group.half_sums[0]);
    out.half_sums[2 * index + 1] = static_cast<std::int16_t>(group.half_sums[1]);
}

}  // namespace coterie::cuda
