#pragma once

#include <cstdint>

/// The tensor cores' integer products and what brings their operands into place. Each function is one
/// instruction where the card has it and the same values from older ones where it does not.
namespace coterie::cuda {

/// Integer sums begin at the bits of 1.5 * 2^23, so that one subtraction makes them floats; exact for sums
/// below 2^22.
inline constexpr std::uint32_t kMagicBits = 0x4b400000;
inline constexpr float kMagic = 12582912.0f;

/// Of sums of at most 32 products of two signed bytes.
__device__ __forceinline__ float number_of_sum(std::uint32_t sum) {
    return __fsub_rn(__uint_as_float(sum), kMagic);
}

/// Four matrices of 8 rows of 16 bytes from shared memory; lane l names row l % 8 of matrix l / 8 and gets
/// bytes 4 (l % 4) .. + 3 of row l / 4 of each.
__device__ __forceinline__ uint4 load_matrices(const void* row) {
    uint4 result;
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(result.x), "=r"(result.y), "=r"(result.z), "=r"(result.w)
                 : "r"(address)
                 : "memory");
    return result;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
/// Eight rows with eight columns, 16 values deep, added to `sums`.
__device__ __forceinline__ void add_eight_rows(std::uint32_t (&sums)[2], std::uint32_t rows,
                                               std::uint32_t columns) {
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+r"(sums[0]), "+r"(sums[1])
        : "r"(rows), "r"(columns));
}
#endif

/// Sums of 16 rows with 8 columns. `low` and `high` are two matrices of rows each, a half of the group's
/// values deep: rows 0 .. 7 in x, 8 .. 15 in y. The lane gets rows l / 4 (first two) and l / 4 + 8, columns 2
/// (l % 4) and the next, each sum added to kMagicBits.
__device__ __forceinline__ void half_group_sums(std::uint32_t (&sums)[4], uint2 rows, std::uint32_t columns) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    std::uint32_t upper[2] = {kMagicBits, kMagicBits};
    std::uint32_t lower[2] = {kMagicBits, kMagicBits};
    add_eight_rows(upper, rows.x, columns);
    add_eight_rows(lower, rows.y, columns);
    sums[0] = upper[0], sums[1] = upper[1], sums[2] = lower[0], sums[3] = lower[1];
#else
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%7,%7,%7};"
        : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
        : "r"(rows.x), "r"(rows.y), "r"(columns), "r"(kMagicBits));
#endif
}

__device__ __forceinline__ void group_sums(std::uint32_t (&sums)[4], uint4 rows, uint2 columns) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    std::uint32_t upper[2] = {kMagicBits, kMagicBits};
    std::uint32_t lower[2] = {kMagicBits, kMagicBits};
    add_eight_rows(upper, rows.x, columns.x);
    add_eight_rows(upper, rows.z, columns.y);
    add_eight_rows(lower, rows.y, columns.x);
    add_eight_rows(lower, rows.w, columns.y);
    sums[0] = upper[0], sums[1] = upper[1], sums[2] = lower[0], sums[3] = lower[1];
#else
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%10,%10,%10};"
        : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
        : "r"(rows.x), "r"(rows.y), "r"(rows.z), "r"(rows.w), "r"(columns.x), "r"(columns.y),
          "r"(kMagicBits));
#endif
}

}  // namespace coterie::cuda
