#include "server/api/slot_name.h"

#include <algorithm>
#include <cctype>

#include "server/json/api_error.h"

namespace coterie::server {

std::string slot_path(const std::string& folder, const std::string& name) {
    constexpr std::size_t kLongest = 128;
    if (folder.empty()) {
        throw ApiError(400, "saving slots is off; start the server with --slot-save-path FOLDER");
    }
    const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
    });
    if (name.empty() || name.size() > kLongest || name.front() == '.' || !plain) {
        refuse_field("filename",
                     "must be a plain file name: letters, digits, '.', '_' and '-', at most 128 of them");
    }
    return folder + "/" + name;
}

}  // namespace coterie::server
