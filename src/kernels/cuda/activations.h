#pragma once

#include <cstddef>
#include <cstdint>

/// A step's rows on the device, as inputs of products.
namespace coterie::cuda {

/// Where the quantised form of rows lies (docs/canonical-arithmetic.md), `groups` groups of 32 values a row.
struct ActivationBuffer {
    std::int8_t* quants = nullptr;      ///< [rows][groups * 32]
    float* scales = nullptr;            ///< [rows][groups][2]: scale, then scale times the sum of the quants
    std::int16_t* half_sums = nullptr;  ///< [rows][groups][2]: sums of each 16 quants
    std::int64_t groups = 0;            ///< from one row to the next; at least the row's own, a multiple of 4

    static constexpr std::int64_t kGroupBytes = 32 + 8 + 4;
    static constexpr std::int64_t bytes(std::int64_t rows, std::int64_t groups) {
        return rows * groups * kGroupBytes;
    }
    /// Cuts `bytes(rows, groups)` bytes at `memory`, 16-byte aligned, into the three arrays.
    static ActivationBuffer in(std::byte* memory, std::int64_t rows, std::int64_t groups) {
        ActivationBuffer buffer;
        buffer.quants = reinterpret_cast<std::int8_t*>(memory);
        buffer.scales = reinterpret_cast<float*>(memory + rows * groups * 32);
        buffer.half_sums = reinterpret_cast<std::int16_t*>(memory + rows * groups * 40);
        buffer.groups = groups;
        return buffer;
    }
    /// The rows from `row` on.
    ActivationBuffer from(std::int64_t row) const {
        ActivationBuffer rest = *this;
        rest.quants += row * groups * 32;
        rest.scales += row * groups * 2;
        rest.half_sums += row * groups * 2;
        return rest;
    }
};

/// Inputs of a product: binary32 for F32, F16 and BF16 weights, quantised for all others.
struct Activations {
    const float* values = nullptr;  ///< [rows][value_stride]
    std::int64_t value_stride = 0;
    ActivationBuffer quantised;
};

}  // namespace coterie::cuda
