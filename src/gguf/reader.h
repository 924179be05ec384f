#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gguf/metadata.h"
#include "gguf/tensor.h"

namespace coterie::gguf {

/// What one GGUF file holds. It borrows the file's bytes, which must outlive it.
struct Directory {
    std::uint32_t version;
    std::uint64_t alignment;
    std::uint64_t data_offset;  ///< where tensor data begins
    Metadata metadata;
    std::vector<Tensor> tensors;  ///< in the file's order
};

/// Reads the directory of a GGUF file, version 2 or 3, without touching tensor data.
///
/// Everything the file claims is checked before it is used or allocated for: afterwards every tensor lies
/// inside the file, on the file's alignment, apart from all others, under a name of its own. A file that
/// breaks this ends in an Error of one line with `file` (the name to display), the byte offset and the key or
/// tensor. Memory stays in proportion to what the file holds: 64 bytes a key, 90 bytes a tensor; strings and
/// arrays stay in the file.
Directory read_directory(std::span<const std::byte> bytes, std::string file);

}  // namespace coterie::gguf
