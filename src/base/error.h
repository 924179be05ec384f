#pragma once

#include <fmt/core.h>
#include <stdexcept>
#include <string>

namespace coterie {

/// What ended a load or a request. Each code maps to one exit status (`exit_status`) and, in the server, one
/// HTTP status.
enum class ErrorCode {
    InvalidArgument,  ///< a flag, a request field or a prompt that cannot be used
    NotFound,         ///< a file or directory that is not there
    InvalidFile,      ///< a file that is damaged or contradicts itself
    Unsupported,      ///< well-formed, but outside what this program does
    OutOfMemory,      ///< a plan or an allocation that does not fit
    Io,               ///< the system refused a read or a write
    Cancelled,        ///< stopped by the user
    Internal,         ///< our own fault
};

/// Ends the current load or request; `what()` is one line: what is wrong, where, and the way out.
/// Expected outcomes (a miss, a full queue) are values, never exceptions (ADR 0002).
class Error : public std::runtime_error {
  public:
    Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
    ErrorCode code() const { return code_; }

  private:
    ErrorCode code_;
};

/// The program's exit status for an error: part of the command line's interface (docs/command-line.md).
int exit_status(ErrorCode code);

template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
    throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] void fail_check(const char* condition, const char* file, int line);

}  // namespace coterie

/// States what must hold unless this program is wrong. Cheap; stays on in release builds.
#define COTERIE_CHECK(condition) \
    ((condition) ? static_cast<void>(0) : ::coterie::fail_check(#condition, __FILE__, __LINE__))
