#pragma once

#include <cstdint>

#include "gguf/archive.h"

namespace coterie::gguf {

/// 64 bits that tell models apart: of the name, type, shape and first bytes of every tensor. The same for a
/// split model and the same model in one file, and not changed by other metadata. Reads a page or two per
/// tensor; weights that differ only behind a tensor's first 4096 bytes look the same.
std::uint64_t content_hash(const Archive& archive);

}  // namespace coterie::gguf
