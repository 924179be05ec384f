#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"

namespace coterie::gguf {

/// A single value that is read in place of a file's, or of one that the file lacks.
struct MetadataOverride {
    std::string key;
    ValueType type;                ///< I64, F64, Bool or String
    std::vector<std::byte> bytes;  ///< as a file holds it
};

/// "KEY=TYPE:VALUE", where TYPE is int, float, bool (true or false) or str. Throws InvalidArgument that names
/// the text and what is wrong with it.
MetadataOverride parse_metadata_override(std::string_view text);

/// The file's metadata with these values, of which the last counts where a key stands twice. Throws
/// InvalidArgument where the file has the key with an array or with another kind of value. `overrides` must
/// outlive the result.
Metadata override_metadata(const Metadata& metadata, std::span<const MetadataOverride> overrides);

}  // namespace coterie::gguf
