#include "synth/disk_space.h"

#include "base/error.h"

namespace coterie::synth {

void check_disk_space(const std::filesystem::path& path, std::uint64_t needed) {
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    std::error_code error;
    const std::filesystem::space_info space = std::filesystem::space(folder, error);
    if (error) {
        fail(ErrorCode::NotFound, "{}: the folder cannot be written: {}", folder.string(), error.message());
    }
    if (space.available >= needed) return;
    constexpr double kGb = 1e9;
    fail(ErrorCode::Io,
         "{}: the file takes {:.1f} GB and {} has {:.1f} GB free; take fewer --layers, a smaller --quant or "
         "another disk",
         path.string(), static_cast<double>(needed) / kGb, folder.string(),
         static_cast<double>(space.available) / kGb);
}

}  // namespace coterie::synth
