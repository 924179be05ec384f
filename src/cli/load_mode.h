#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gguf/archive.h"

namespace coterie {
class ProgressBar;
}

namespace coterie::engine {
struct OffloadOptions;
}

namespace coterie::cli {

/// The values of --load-mode.
inline constexpr const char* kLoadModes[] = {"auto", "mmap", "pin", "dio"};

/// Bytes that the system could give to programs now; 0 where it does not say.
std::uint64_t available_ram();

/// What `auto` means where a GPU of `vram_bytes` runs a model of `model_bytes` and the system could give
/// `ram_bytes`. Nothing (the files stay mapped) where the model fits the GPU, so that nothing travels, or RAM
/// has no room. Cached where it has room for a copy in the page cache too, from which the next start is
/// quick.
std::optional<gguf::Reading> automatic_reading(std::uint64_t model_bytes, std::uint64_t vram_bytes,
                                               std::uint64_t ram_bytes);

/// Brings the model's files into memory of this program where the mode says so, with one line where that has
/// to go another way than the flag says. True where it did.
bool take_into_memory(const gguf::Archive& archive, const std::string& mode,
                      const engine::OffloadOptions& offload, ProgressBar& bar);

}  // namespace coterie::cli
