#pragma once

#include <cstdint>
#include <string>

namespace coterie::cli {

/// Where a model's routing profile is kept.
struct ProfilePath {
    std::string file;         ///< empty: nowhere
    bool is_default = false;  ///< no flag named it, so that a failure to write it ends nothing
};

/// `flag`: of --cache-profile: a file, "off", or empty for the default: HASH.profile in the folder "coterie"
/// of the user's cache folder ($XDG_CACHE_HOME, or ~/.cache); nowhere where there is neither.
ProfilePath profile_path(const std::string& flag, std::uint64_t model_hash);

}  // namespace coterie::cli
