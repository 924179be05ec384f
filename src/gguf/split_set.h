#pragma once

#include <vector>

#include "gguf/file.h"
#include "gguf/reader.h"
#include "gguf/shard_name.h"

namespace coterie::gguf {

/// Maps all files of the set; refuses with the names of all that are missing.
std::vector<File> open_split_files(const ShardName& name);

/// Refuses a file that says it is part of a split set although it was opened alone: a renamed one.
void check_not_split(const Directory& directory);

/// Refuses a set whose files do not belong together: each must carry its number and the set's count, and the
/// tensors of all must be as many as the set claims, under different names.
void check_split_set(const std::vector<Directory>& directories);

}  // namespace coterie::gguf
