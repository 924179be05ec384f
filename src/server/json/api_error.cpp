#include "server/json/api_error.h"

#include <fmt/format.h>

namespace coterie::server {

ContextError::ContextError(std::int64_t tokens, std::int64_t most, std::int64_t context)
    : ApiError(400,
               fmt::format("the prompt has {} tokens, but the maximum context length is {} tokens{}; use a "
                           "shorter prompt, or start the server with a larger -c",
                           tokens, context, most < context ? ", for the prompt and its answer" : ""),
               {}, "context_length_exceeded"),
      tokens_(tokens),
      most_(most),
      context_(context) {}

int http_status(ErrorCode code) {
    switch (code) {
        case ErrorCode::InvalidArgument:
        case ErrorCode::InvalidFile:
        case ErrorCode::Unsupported:
            return 400;
        case ErrorCode::NotFound:
            return 404;
        case ErrorCode::OutOfMemory:
        case ErrorCode::Cancelled:
            return 503;
        case ErrorCode::Io:
        case ErrorCode::Internal:
            break;
    }
    return 500;
}

std::string_view error_type(int status) {
    switch (status) {
        case 401:
            return "authentication_error";
        case 403:
            return "permission_error";
        case 404:
            return "not_found_error";
        case 413:
            return "request_too_large";
        case 429:
            return "rate_limit_error";
        case 503:
            return "unavailable_error";
        default:
            return status < 500 ? "invalid_request_error" : "server_error";
    }
}

void refuse_field(const std::string& path, const std::string& problem) {
    throw ApiError(400, fmt::format("{}: {}", path, problem), path);
}

}  // namespace coterie::server
