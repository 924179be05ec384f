#include "cli/profile_path.h"

#include <cstdlib>
#include <fmt/format.h>

#include "cli/environment.h"

namespace coterie::cli {

std::string cache_folder() {
    // Relative paths in the variables count as not set, as the XDG base directory specification asks for.
    const char* cache = std::getenv(environment::kCacheFolder);
    if (cache != nullptr && cache[0] == '/') return fmt::format("{}/coterie", cache);
    const char* home = std::getenv(environment::kHome);
    return home != nullptr && home[0] == '/' ? fmt::format("{}/.cache/coterie", home) : std::string();
}

ProfilePath profile_path(const std::string& flag, std::uint64_t model_hash) {
    if (flag == "off") return {};
    if (!flag.empty()) return {.file = flag};
    const std::string folder = cache_folder();
    if (folder.empty()) return {};
    return {.file = fmt::format("{}/{:016x}.profile", folder, model_hash), .is_default = true};
}

}  // namespace coterie::cli
