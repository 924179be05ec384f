#include "server/page/assets.h"

#include <algorithm>
#include <span>

namespace coterie::server {

/// Of the generated source.
std::span<const Asset> embedded_assets();

std::optional<Asset> find_asset(std::string_view path) {
    const std::span<const Asset> assets = embedded_assets();
    const auto found =
        std::find_if(assets.begin(), assets.end(), [&](const Asset& asset) { return asset.path == path; });
    return found == assets.end() ? std::nullopt : std::optional(*found);
}

std::optional<HttpResponse> page_response(const HttpRequest& request) {
    if (request.method != "GET" && request.method != "HEAD") return std::nullopt;
    const bool front = request.path == "/";
    if (const auto asset = find_asset(front ? "/index.html" : request.path)) {
        HttpResponse response{.content_type = std::string(asset->content_type),
                              .body = std::string(asset->bytes)};
        // Nothing but its own files, and no HTML that was not sanitised: no text of a model can make the page
        // load, run or send anything.
        response.headers = {
            {"Content-Security-Policy",
             "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
             "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
             "require-trusted-types-for 'script'; trusted-types dompurify"},
            {"Referrer-Policy", "no-referrer"},
            {"Cache-Control", front ? "no-cache" : "max-age=31536000, immutable"}};
        return response;
    }
    if (!front) return std::nullopt;
    return HttpResponse{.content_type = "text/plain; charset=utf-8",
                        .body = "coterie serves the API below /v1; GET /health tells whether it is ready.\n"};
}

}  // namespace coterie::server
