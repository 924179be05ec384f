#pragma once

#include <cstdint>
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

/// A prompt that the context does not hold: 400 "context_length_exceeded", in words that clients look for.
class ContextError : public ApiError {
  public:
    /// `most`: tokens that the prompt may have in a context of `context`; fewer where an answer follows.
    ContextError(std::int64_t tokens, std::int64_t most, std::int64_t context);

    std::int64_t tokens() const { return tokens_; }    ///< of the prompt
    std::int64_t most() const { return most_; }        ///< that it may have
    std::int64_t context() const { return context_; }  ///< for the prompt and its answer

  private:
    std::int64_t tokens_;
    std::int64_t most_;
    std::int64_t context_;
};

/// The one table from error codes to HTTP.
int http_status(ErrorCode code);

/// The word that OpenAI's API has for a status: "invalid_request_error" and so on.
std::string_view error_type(int status);

/// Refuses a field of a request: 400.
[[noreturn]] void refuse_field(const std::string& path, const std::string& problem);

}  // namespace coterie::server
