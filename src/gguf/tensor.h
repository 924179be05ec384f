#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "quant/data_type.h"

namespace coterie::gguf {

/// A tensor and where its bytes lie. It borrows the file's bytes.
///
/// dims[0] is the contiguous dimension: a row has dims[0] elements, a matrix is {inputs, outputs}, the
/// experts of a layer are {inputs, outputs, experts}. Rows are packed; a block never crosses a row and has no
/// alignment of its own.
struct Tensor {
    std::string_view name;
    DataType type;
    int rank;                          ///< 1..4
    std::array<std::int64_t, 4> dims;  ///< missing ones are 1
    std::span<const std::byte> bytes;
    std::uint64_t file_offset;  ///< of `bytes` in its file
    std::uint32_t shard = 0;    ///< zero-based number of that file in its set

    std::int64_t values() const { return dims[0] * dims[1] * dims[2] * dims[3]; }

    /// Matrices (experts) of a tensor of three or more dimensions.
    std::int64_t slices() const { return dims[2] * dims[3]; }
    std::span<const std::byte> slice(std::int64_t index) const {
        const std::size_t slice_bytes = bytes.size() / static_cast<std::size_t>(slices());
        return bytes.subspan(static_cast<std::size_t>(index) * slice_bytes, slice_bytes);
    }
};

/// "2048 x 768 x 128"
std::string shape_text(const Tensor& tensor);

}  // namespace coterie::gguf
