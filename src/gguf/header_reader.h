#pragma once

#include <cstdint>
#include <vector>

#include "gguf/cursor.h"
#include "gguf/metadata.h"

namespace coterie::gguf {

/// Longest key or tensor name. The format allows keys of 2^16 - 1 bytes.
inline constexpr std::uint64_t kMaxNameBytes = 65535;

struct FileHeader {
    std::uint32_t version;
    std::uint64_t tensors;
    std::uint64_t keys;
};

/// Reads magic, version and counts, and refuses counts that the rest of the file has no room for.
FileHeader read_header(Cursor& cursor);

/// Reads the key/value pairs that follow the header.
std::vector<MetadataEntry> read_metadata(Cursor& cursor, std::uint64_t keys);

}  // namespace coterie::gguf
