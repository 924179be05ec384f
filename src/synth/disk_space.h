#pragma once

#include <cstdint>
#include <filesystem>

namespace coterie::synth {

/// Refuses a file of `needed` bytes at `path` that its disk cannot hold (Io), or whose folder is not there
/// (NotFound).
void check_disk_space(const std::filesystem::path& path, std::uint64_t needed);

}  // namespace coterie::synth
