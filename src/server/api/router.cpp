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

/// Anthropic's clients know a prompt that is too long by these words.
std::string anthropic_message(const ApiError& error) {
    const auto* context = dynamic_cast<const ContextError*>(&error);
    if (!context) return error.what();
    return fmt::format("prompt is too long: {} tokens > {} maximum; {}", context->tokens(), context->most(),
                       context->what());
}

Json anthropic_error(const ApiError& error) {
    return {{"type", "error"},
            {"error", {{"type", anthropic_type(error.status())}, {"message", anthropic_message(error)}}}};
}

Json openai_error(const ApiError& error) {
    Json fields = {{"message", error.what()},
                   {"type", error_type(error.status())},
                   {"param", error.parameter().empty() ? Json() : Json(error.parameter())},
                   {"code", error.code().empty() ? Json() : Json(error.code())}};
    if (const auto* context = dynamic_cast<const ContextError*>(&error)) {
        fields["n_prompt_tokens"] = context->tokens();
        fields["n_ctx"] = context->context();
    }
    return {{"error", std::move(fields)}};
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
    return error_response(ApiError(status, message, parameter, code), path);
}

HttpResponse error_response(const ApiError& error, const std::string& path) {
    const int status = error.status();
    HttpResponse response{.status = status};
    const bool anthropic = path.rfind("/v1/messages", 0) == 0;
    response.body = dump(anthropic ? anthropic_error(error) : openai_error(error));
    if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "2");
    if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
}

}  // namespace coterie::server
