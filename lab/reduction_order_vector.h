#pragma once

// Matrix-vector kernels of the study, one per way to follow an order. All give 8 threads to a row and two
// rows to such an octet, so that an activation is loaded once for both; a warp owns 8 neighbouring rows.

#include "reduction_order_gpu.h"

namespace coterie::lab {

enum class LanesOf {
    Eight,
    ThirtyTwo
};  ///< orders (b) and (c): thread t keeps lanes t, t + 8 ... of its octet

inline constexpr int kRowsPerOctet = 2;
inline constexpr int kVectorThreads = 128;
inline constexpr int kRowsPerBlock = kVectorThreads / 8 * kRowsPerOctet;

/// Floats per group that `segments_staged` hands over.
constexpr int staged_parts(Type type) { return type == Type::Q4_K ? 3 : 2; }

/// Adds one value of each of 8 threads in ascending order of threads; every thread gets the sum.
__device__ __forceinline__ float octet_sum_ascending(float value) {
    float total = 0.0f;
#pragma unroll
    for (int t = 0; t < 8; ++t) total = __fadd_rn(total, __shfl_sync(0xffffffff, value, t, 8));
    return total;
}

__device__ __forceinline__ float octet_sum_pairwise(float value) {
#pragma unroll
    for (int width = 4; width > 0; width /= 2)
        value = __fadd_rn(value, __shfl_down_sync(0xffffffff, value, width, 8));
    return value;
}

template <Type type, LanesOf kind>
__global__ void __launch_bounds__(kVectorThreads)
    interleaved_vector(const std::uint8_t* matrix, DeviceActivation x, float* out) {
    constexpr int kLanes = kind == LanesOf::ThirtyTwo ? 4 : 1;
    const int t = threadIdx.x & 7;
    const int row = (blockIdx.x * kVectorThreads + threadIdx.x) / 8 * kRowsPerOctet;
    const std::size_t stride = static_cast<std::size_t>(x.blocks) * block_bytes(type);
    const std::uint8_t* p = matrix + row * stride;
    float lanes[kRowsPerOctet][kLanes] = {};
    for (int first = 0; first < x.blocks; first += 4) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int b = first + i;
            if (b >= x.blocks) break;
            const ActivationPart part = load_activation<type>(x, b, t);
#pragma unroll
            for (int r = 0; r < kRowsPerOctet; ++r) {
                float& acc = lanes[r][i % kLanes];
                acc = add_term<type>(block_term<type>(p + r * stride + b * block_bytes(type), part, t),
                                     x.scales[8 * b + t], x.scaled_sums[8 * b + t], acc);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < kRowsPerOctet; ++r) {
        float sum;
        if constexpr (kind == LanesOf::ThirtyTwo)
            sum = octet_sum_pairwise(
                __fadd_rn(__fadd_rn(lanes[r][0], lanes[r][2]), __fadd_rn(lanes[r][1], lanes[r][3])));
        else
            sum = octet_sum_ascending(lanes[r][0]);
        if (t == 0) out[row + r] = sum;
    }
}

/// Order (d): threads 0 to 3 keep the lanes of the octet's first row, threads 4 to 7 those of its second; per
/// block each hands its other row's term to the thread four away.
template <Type type>
__global__ void __launch_bounds__(kVectorThreads)
    four_lanes(const std::uint8_t* matrix, DeviceActivation x, float* out) {
    const int t = threadIdx.x & 7;
    const bool upper = t >= 4;
    const int row = (blockIdx.x * kVectorThreads + threadIdx.x) / 8 * kRowsPerOctet;
    const std::size_t stride = static_cast<std::size_t>(x.blocks) * block_bytes(type);
    const std::uint8_t* p = matrix + row * stride;
    float acc = 0.0f;
    for (int first = 0; first < x.blocks; first += 4) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int b = first + i;
            if (b >= x.blocks) break;
            const ActivationPart part = load_activation<type>(x, b, t);
            const DeviceTerm a = block_term<type>(p + b * block_bytes(type), part, t);
            const DeviceTerm c = block_term<type>(p + stride + b * block_bytes(type), part, t);
            const DeviceTerm mine = upper ? c : a;
            DeviceTerm other = upper ? a : c;
            other.sum = __shfl_xor_sync(0xffffffff, other.sum, 4);
            other.ds = __shfl_xor_sync(0xffffffff, other.ds, 4);
            if constexpr (type == Type::Q4_K) other.ms = __shfl_xor_sync(0xffffffff, other.ms, 4);
            const int g = 8 * b + (t & 3);
            acc = add_term<type>(upper ? other : mine, x.scales[g], x.scaled_sums[g], acc);
            acc = add_term<type>(upper ? mine : other, x.scales[g + 4], x.scaled_sums[g + 4], acc);
        }
    }
    float total = 0.0f;
#pragma unroll
    for (int l = 0; l < 4; ++l) total = __fadd_rn(total, __shfl_sync(0xffffffff, acc, l, 4));
    if ((t & 3) == 0) out[row + t / 4] = total;
}

template <Type type>
__global__ void __launch_bounds__(kVectorThreads)
    segments_alone(const std::uint8_t* matrix, DeviceActivation x, float* out) {
    const int segment = threadIdx.x & 7;
    const int groups = 8 * x.blocks;
    const int row = (blockIdx.x * kVectorThreads + threadIdx.x) / 8 * kRowsPerOctet;
    const std::size_t stride = static_cast<std::size_t>(x.blocks) * block_bytes(type);
    const int end = segment_begin(segment + 1, groups);
    for (int r = 0; r < kRowsPerOctet; ++r) {
        const std::uint8_t* p = matrix + (row + r) * stride;
        float acc = 0.0f;
#pragma unroll 2
        for (int g = segment_begin(segment, groups); g < end; ++g)
            acc = add_term<type>(lone_term<type>(p + g / 8 * block_bytes(type), x, g / 8, g % 8), x.scales[g],
                                 x.scaled_sums[g], acc);
        acc = octet_sum_ascending(acc);
        if (segment == 0) out[row + r] = acc;
    }
}

/// Shared memory: per octet and row, the float parts of `groups` terms; a pad of one spreads octets over the
/// banks. Handing over only the integers and decoding the scales in the segment's thread was slower: its
/// blocks lie far apart.
template <Type type>
__global__ void __launch_bounds__(kVectorThreads)
    segments_staged(const std::uint8_t* matrix, DeviceActivation x, float* out) {
    extern __shared__ float staged[];
    constexpr int kParts = staged_parts(type);
    const int t = threadIdx.x & 7;
    const int groups = 8 * x.blocks;
    const int pitch = groups + 1;
    float* terms = staged + threadIdx.x / 8 * kRowsPerOctet * kParts * pitch;
    const int row = (blockIdx.x * kVectorThreads + threadIdx.x) / 8 * kRowsPerOctet;
    const std::size_t stride = static_cast<std::size_t>(x.blocks) * block_bytes(type);
    const std::uint8_t* p = matrix + row * stride;
#pragma unroll 4
    for (int b = 0; b < x.blocks; ++b) {
        const ActivationPart part = load_activation<type>(x, b, t);
        const float scale = x.scales[8 * b + t];
#pragma unroll
        for (int r = 0; r < kRowsPerOctet; ++r) {
            const DeviceTerm term = block_term<type>(p + r * stride + b * block_bytes(type), part, t);
            float* slot = terms + r * kParts * pitch + 8 * b + t;
            slot[0] = static_cast<float>(term.sum);
            slot[pitch] = __fmul_rn(term.ds, scale);
            if constexpr (type == Type::Q4_K) slot[2 * pitch] = term.ms;
        }
    }
    __syncwarp();
    const int end = segment_begin(t + 1, groups);
#pragma unroll
    for (int r = 0; r < kRowsPerOctet; ++r) {
        const float* slot = terms + r * kParts * pitch;
        float acc = 0.0f;
        for (int g = segment_begin(t, groups); g < end; ++g) {
            acc = __fmaf_rn(slot[g], slot[pitch + g], acc);
            if constexpr (type == Type::Q4_K) acc = __fmaf_rn(slot[2 * pitch + g], x.scaled_sums[g], acc);
        }
        acc = octet_sum_ascending(acc);
        if (t == 0) out[row + r] = acc;
    }
}

}  // namespace coterie::lab
