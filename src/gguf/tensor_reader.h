#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gguf/cursor.h"
#include "gguf/tensor.h"

namespace coterie::gguf {

/// A tensor as the directory states it, before its bytes are located. What can be checked without them has
/// been.
struct TensorInfo {
    Tensor tensor;            ///< without bytes and file_offset
    std::uint64_t bytes;      ///< size of the data
    std::uint64_t offset;     ///< from the start of the data section
    std::uint64_t offset_at;  ///< where the offset stands in the file
};

/// Reads the tensor directory that follows the metadata.
std::vector<TensorInfo> read_tensor_infos(Cursor& cursor, std::uint64_t count, std::uint64_t alignment);

/// Finds the bytes of the tensors in `file_bytes`, and refuses tensors outside it, overlapping, or of one
/// name.
std::vector<Tensor> locate_tensors(Cursor& cursor, const std::vector<TensorInfo>& infos,
                                   std::span<const std::byte> file_bytes, std::uint64_t data_offset);

}  // namespace coterie::gguf
