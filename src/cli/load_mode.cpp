#include "cli/load_mode.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/log.h"
#include "base/progress_bar.h"
#include "devices/device.h"
#include "engine/offload_options.h"

namespace coterie::cli {
namespace {

using gguf::Reading;

/// Of all GPUs that run the model.
std::uint64_t allowed_vram(const engine::OffloadOptions& offload) {
    const DeviceList list = list_devices();
    std::uint64_t vram = 0;
    for (std::size_t i = 0; i < offload.gpus.size(); ++i) {
        const std::uint64_t all = list.devices[static_cast<std::size_t>(offload.gpus[i])].memory_bytes;
        const std::uint64_t limit = i < offload.gpu_memory_limits.size() ? offload.gpu_memory_limits[i] : 0;
        vram += limit > 0 ? std::min(all, limit) : all;
    }
    return vram;
}

std::optional<Reading> reading_for(const gguf::Archive& archive, const std::string& mode,
                                   const engine::OffloadOptions& offload) {
    if (mode == "pin") return Reading::Cached;
    if (mode == "dio") return Reading::Direct;
    if (mode == "mmap" || offload.gpus.empty()) return std::nullopt;
    return automatic_reading(archive.total_bytes(), allowed_vram(offload), available_ram());
}

}  // namespace

std::uint64_t available_ram() {
    std::ifstream file("/proc/meminfo");
    std::string name;
    std::uint64_t kibibytes = 0;
    for (std::string line; std::getline(file, line);) {
        std::istringstream(line) >> name >> kibibytes;
        if (name == "MemAvailable:") return kibibytes << 10;
    }
    return 0;
}

std::optional<Reading> automatic_reading(std::uint64_t model_bytes, std::uint64_t vram_bytes,
                                         std::uint64_t ram_bytes) {
    const std::uint64_t with_workspace = model_bytes + model_bytes / 4;
    if (model_bytes <= vram_bytes || ram_bytes <= with_workspace) return std::nullopt;
    return ram_bytes > with_workspace + model_bytes ? Reading::Cached : Reading::Direct;
}

bool take_into_memory(const gguf::Archive& archive, const std::string& mode,
                      const engine::OffloadOptions& offload, ProgressBar& bar) {
    const std::optional<Reading> wish = reading_for(archive, mode, offload);
    if (!wish) return false;
    const std::uint64_t total = archive.total_bytes();
    const Reading read =
        archive.take_into_memory(*wish, [&](std::uint64_t done) { bar.update(done, total); });
    if (mode == "dio" && read != Reading::Direct) {
        log::warn("--load-mode dio: the file system of {} has no direct reads; the page cache was used",
                  archive.name());
    }
    return true;
}

}  // namespace coterie::cli
