#include "server/api/router.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "server/json/api_error.h"
#include "server/json/parse.h"

namespace coterie::server {
namespace {

constexpr std::string_view kSegment = "{id}";

std::string anthropic_type(int status) {
    if (status == 529 || status == 503) return "overloaded_error";
    if (status >= 500) return "api_error";
    return std::string(error_type(status));
}

Json openai_error(int status, const std::string& message, const std::string& parameter,
                  const std::string& code) {
    return {{"error",
             {{"message", message},
              {"type", error_type(status)},
              {"param", parameter.empty() ? Json() : Json(parameter)},
              {"code", code.empty() ? Json() : Json(code)}}}};
}

}  // namespace

void Router::add(const std::string& method, const std::string& path, Handler handler) {
    routes_[path][method] = std::move(handler);
}

const Router::Methods* Router::find(const std::string& path, std::string& id) const {
    if (const auto found = routes_.find(path); found != routes_.end()) return &found->second;
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos || slash + 1 == path.size()) return nullptr;
    const auto found = routes_.find(path.substr(0, slash + 1) + std::string(kSegment));
    if (found == routes_.end()) return nullptr;
    id = path.substr(slash + 1);
    return &found->second;
}

HttpResponse Router::handle(const HttpRequest& request) const {
    std::string id;
    const auto* methods = find(request.path, id);
    if (!methods) throw ApiError(404, fmt::format("there is nothing at {}", request.path));
    const auto handler = methods->find(request.method == "HEAD" ? "GET" : request.method);
    return handler == methods->end() ? refuse_method(request, *methods) : handler->second(request, id);
}

HttpResponse Router::refuse_method(const HttpRequest& request, const Methods& methods) {
    std::string allowed = "OPTIONS";
    for (const auto& [method, handler] : methods) allowed += ", " + method;
    if (methods.contains("GET")) allowed += ", HEAD";
    HttpResponse response = error_response(
        405, fmt::format("{} does not take {}, but {}", request.path, request.method, allowed), request.path);
    response.headers.emplace_back("Allow", std::move(allowed));
    return response;
}

HttpResponse error_response(int status, const std::string& message, const std::string& path,
                            const std::string& parameter, const std::string& code) {
    HttpResponse response{.status = status};
    const bool anthropic = path.rfind("/v1/messages", 0) == 0;
    response.body = dump(anthropic ? Json{{"type", "error"},
                                          {"error", {{"type", anthropic_type(status)}, {"message", message}}}}
                                   : openai_error(status, message, parameter, code));
    if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "2");
    if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
}

}  // namespace coterie::server
