#pragma once

#include <stdexcept>
#include <string>

#include "base/error.h"

namespace coterie::server {

/// What ends a request, in the words of HTTP. `what()` is the sentence that the client sees.
class ApiError : public std::runtime_error {
  public:
    ApiError(int status, const std::string& message, std::string parameter = {}, std::string code = {})
        : std::runtime_error(message),
          status_(status),
          parameter_(std::move(parameter)),
          code_(std::move(code)) {}

    int status() const { return status_; }
    const std::string& parameter() const { return parameter_; }  ///< the field at fault, or empty
    const std::string& code() const { return code_; }            ///< a word for programs, or empty

  private:
    int status_;
    std::string parameter_;
    std::string code_;
};

/// The one table from error codes to HTTP.
int http_status(ErrorCode code);

/// The word that OpenAI's API has for a status: "invalid_request_error" and so on.
std::string_view error_type(int status);

/// Refuses a field of a request: 400.
[[noreturn]] void refuse_field(const std::string& path, const std::string& problem);

}  // namespace coterie::server
