#pragma once

#include <cstdint>
#include <cuda_fp16.h>

#include "kernels/cuda/device/lanes.cuh"

/// Products of small matrices of binary16 by one warp, summed in binary32. Needs compute capability 8.0; on
/// older cards the functions do nothing and no kernel that calls them is launched.
namespace coterie::cuda {

/// Four matrices of 8 x 8 numbers: thread 4 r + c holds columns 2 c and 2 c + 1 of row r of each. As a left
/// factor of 16 x 16: rows 0 to 7, rows 8 to 15, then both with columns 8 to 15.
struct HalfMatrices {
    std::uint32_t x;
    std::uint32_t y;
    std::uint32_t z;
    std::uint32_t w;
};

/// Of 16 rows of 16 numbers in shared memory, `pitch` numbers apart, as right factors: x and y for rows 0 to
/// 7 (columns 0 to 7, then 8 to 15), z and w for rows 8 to 15. Rows are the product's columns.
__device__ __forceinline__ HalfMatrices load_matrices(const __half* first, int pitch) {
    HalfMatrices m{};
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    const int lane = lane_index();
    const __half* row = first + (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 8;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m.x), "=r"(m.y), "=r"(m.z), "=r"(m.w)
                 : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row))));
#endif
    return m;
}

/// The same numbers where columns are the product's columns: x and y for columns 0 to 7 (rows 0 to 7, then 8
/// to 15), z and w for columns 8 to 15.
__device__ __forceinline__ HalfMatrices load_transposed(const __half* first, int pitch) {
    HalfMatrices m{};
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    const int lane = lane_index();
    const __half* row = first + lane % 16 * pitch + lane / 16 * 8;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m.x), "=r"(m.y), "=r"(m.z), "=r"(m.w)
                 : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row))));
#endif
    return m;
}

/// sums += left (16 x 16) times right (16 x 8): sums of rows r, r and r + 8, r + 8, columns 2 c and 2 c + 1
/// each.
__device__ __forceinline__ void multiply_add(float (&sums)[4], const HalfMatrices& left,
                                             std::uint32_t right_low, std::uint32_t right_high) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left.x), "r"(left.y), "r"(left.z), "r"(left.w), "r"(right_low), "r"(right_high));
#endif
}

}  // namespace coterie::cuda
