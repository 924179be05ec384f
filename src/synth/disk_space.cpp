#include "synth/disk_space.h"

#include "base/byte_size_text.h"
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
    fail(ErrorCode::Io,
         "{}: the file takes {} and {} has {} free; take fewer --layers, a smaller --quant or another disk",
         path.string(), byte_size_text(needed), folder.string(), byte_size_text(space.available));
}

}  // namespace coterie::synth
