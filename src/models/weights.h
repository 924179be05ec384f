#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quant/data_type.h"

namespace coterie::models {

/// A small tensor (norm, bias, sink), decoded to binary32 at load whatever its type in the file.
using Vector = std::vector<float>;

/// A weight matrix in the file's own bytes: out[r] = row r . x, then times `scale`, then plus bias[r].
struct Matrix {
    std::string name;
    DataType type = DataType::F32;
    std::int64_t columns = 0;
    std::int64_t rows = 0;
    std::int64_t row_bytes = 0;
    const std::byte* data = nullptr;
    float scale = 1.0f;
    Vector bias;  ///< [rows] or empty

    std::int64_t bytes() const { return rows * row_bytes; }

    /// Rows [begin, begin + count) as a matrix of their own: a part of a fused tensor.
    Matrix slice(std::int64_t begin, std::int64_t count) const;
};

/// Matrices of one shape, one per expert (or per head).
struct ExpertMatrix {
    std::string name;
    DataType type = DataType::F32;
    std::int64_t columns = 0;
    std::int64_t rows = 0;
    std::int64_t row_bytes = 0;
    std::vector<const std::byte*> data;  ///< [experts]
    Vector scales;                       ///< [experts] or empty: 1
    Vector bias;                         ///< [experts][rows] or empty

    std::int64_t bytes_per_expert() const { return rows * row_bytes; }
    float scale(std::int64_t expert) const {
        return scales.empty() ? 1.0f : scales[static_cast<std::size_t>(expert)];
    }
    const float* bias_of(std::int64_t expert) const {
        return bias.empty() ? nullptr : bias.data() + expert * rows;
    }
};

}  // namespace coterie::models
