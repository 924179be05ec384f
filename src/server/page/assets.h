#pragma once

#include <optional>
#include <string_view>

#include "server/http/message.h"

namespace coterie::server {

/// A file of the page, embedded in the program.
struct Asset {
    std::string_view path;  ///< as in a URL: "/index.html", "/assets/app.js"
    std::string_view content_type;
    std::string_view bytes;
};

/// The embedded files, or none where the page was not built (CMakeLists.txt says from where they come).
std::optional<Asset> find_asset(std::string_view path);

/// The response for a path of the page; nothing for any other path or method. Without an embedded page, `/`
/// says where the API is.
std::optional<HttpResponse> page_response(const HttpRequest& request);

}  // namespace coterie::server
