#pragma once

#include <string>

namespace coterie::server {

/// The path of a slot's file in the configured folder. Throws ApiError 400 for anything but a plain file
/// name: letters, digits, `.`, `_` and `-`, at most 128 of them, not beginning with a point; and where no
/// folder is configured.
std::string slot_path(const std::string& folder, const std::string& name);

}  // namespace coterie::server
