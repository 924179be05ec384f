#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/function_ref.h"

namespace coterie::gguf {

/// How a file's bytes come into memory of the program's own.
enum class Reading {
    Cached,  ///< through the page cache, which keeps a copy as long as RAM has room
    Direct,  ///< past it (O_DIRECT): no second copy, and what others have there stays
};

/// Fills `to` with the open file's first bytes, by several threads, telling `progress` how many are there.
/// Returns Direct where all came past the page cache: not every file system can. The rest of `to`'s last page
/// may be written too. Throws Io with `name` where the file ends early or cannot be read; an exception of
/// `progress` ends it.
Reading read_file(int descriptor, const std::string& name, std::span<std::byte> to, Reading wish,
                  FunctionRef<void(std::uint64_t bytes_done)> progress);

}  // namespace coterie::gguf
