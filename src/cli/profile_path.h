#pragma once

#include <cstdint>
#include <string>

namespace coterie::cli {

/// The folder "coterie" of the user's cache folder ($XDG_CACHE_HOME, or ~/.cache); empty where there is
/// neither. It may not be there yet.
std::string cache_folder();

/// Where a model's routing profile is kept.
struct ProfilePath {
    std::string file;         ///< empty: nowhere
    bool is_default = false;  ///< no flag named it, so that a failure to write it ends nothing
};

/// `flag`: of --cache-profile: a file, "off", or empty for the default: HASH.profile in the cache folder;
/// nowhere where there is none.
ProfilePath profile_path(const std::string& flag, std::uint64_t model_hash);

}  // namespace coterie::cli
