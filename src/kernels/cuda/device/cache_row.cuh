#pragma once

#include <cstdint>
#include <cuda_fp16.h>

#include "kernels/cpu/kernels.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/device/quantise.cuh"
#include "kernels/reference/cache_row.h"

/// Rows of keys and values in a page: src/kernels/reference/store_cache.cpp.
namespace coterie::cuda {

/// Address of a head's row at a position.
__device__ __forceinline__ std::byte* cache_row(const CachePages& cache, const PagePartView& part,
                                                std::uint32_t page, int row, int head) {
    return cache.base + page * cache.page_bytes + part.offset + row * part.row_bytes + head * part.head_bytes;
}

template <cpu::CacheType kType>
__device__ __forceinline__ float load_cache(const std::byte* row, int i) {
    if constexpr (kType == cpu::CacheType::F32) return reinterpret_cast<const float*>(row)[i];
    if constexpr (kType == cpu::CacheType::F16) return __half2float(reinterpret_cast<const __half*>(row)[i]);
    const std::byte* block = row + i / 32 * reference::kQ8BlockBytes;
    const auto quant = static_cast<std::int8_t>(block[reference::kQ8ScaleBytes + i % 32]);
    return __fmul_rn(static_cast<float>(quant), __half2float(*reinterpret_cast<const __half*>(block)));
}

/// One warp stores n values; value(i) gives them.
template <cpu::CacheType kType, typename Value>
__device__ __forceinline__ void store_cache(std::byte* row, int n, Value value) {
    const int lane = lane_index();
#pragma unroll 1
    for (int begin = 0; begin < n; begin += 32) {
        const int i = begin + lane;
        if constexpr (kType == cpu::CacheType::Q8_0) {
            const QuantisedGroup group = quantise_group(value(i));
            std::byte* block = row + begin / 32 * reference::kQ8BlockBytes;
            if (lane == 0) *reinterpret_cast<__half*>(block) = __float2half_rn(group.scale);
            block[reference::kQ8ScaleBytes + lane] = static_cast<std::byte>(group.quant);
        } else if constexpr (kType == cpu::CacheType::F16) {
            if (i < n) reinterpret_cast<__half*>(row)[i] = __float2half_rn(value(i));
        } else {
            if (i < n) reinterpret_cast<float*>(row)[i] = value(i);
        }
    }
}

/// The same for a type that is known when it runs.
template <typename Value>
__device__ __forceinline__ void store_cache(cpu::CacheType type, std::byte* row, int n, Value value) {
    switch (type) {
        case cpu::CacheType::F32:
            return store_cache<cpu::CacheType::F32>(row, n, value);
        case cpu::CacheType::F16:
            return store_cache<cpu::CacheType::F16>(row, n, value);
        case cpu::CacheType::Q8_0:
            return store_cache<cpu::CacheType::Q8_0>(row, n, value);
    }
}

}  // namespace coterie::cuda
