#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace coterie::gguf {

/// The name of one file of a split model: `<prefix>-00002-of-00003.gguf`.
struct ShardName {
    std::filesystem::path folder;
    std::string prefix;
    int number;  ///< from 1
    int count;   ///< at least 2

    /// The file `number` of the same set.
    std::filesystem::path path_of(int other_number) const;
};

/// Nothing for the name of an ordinary file, which `x-00001-of-00001.gguf` is too.
std::optional<ShardName> parse_shard_name(const std::filesystem::path& path);

}  // namespace coterie::gguf
