#pragma once

#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "gguf/value.h"

namespace coterie::gguf {

/// Reads forward through a file. It knows which key or tensor is being read, so that each refusal is one line
/// with the file, the byte offset and that name.
class Cursor {
  public:
    Cursor(std::span<const std::byte> bytes, std::string_view file) : bytes_(bytes), file_(file) {}

    std::uint64_t offset() const { return offset_; }
    std::uint64_t remaining() const { return bytes_.size() - offset_; }

    /// Later refusals speak of, for example, "key 3 of 20", until the name is known: "key 'general.name'".
    void enter(std::string_view kind, std::uint64_t index, std::uint64_t count);
    void set_name(std::string_view name) { name_ = name; }
    void leave() { kind_ = {}; }

    /// Reads a trivial value; `what` names it if the file ends here.
    template <typename T>
    T take(std::string_view what) {
        return load<T>(take_bytes(sizeof(T), what).data());
    }

    std::span<const std::byte> take_bytes(std::uint64_t count, std::string_view what);
    std::string_view take_string(std::uint64_t limit, std::string_view what);

    template <typename... Args>
    [[noreturn]] void refuse(ErrorCode code, std::uint64_t offset, fmt::format_string<Args...> format,
                             Args&&... args) const {
        throw Error(code, located(offset, fmt::format(format, std::forward<Args>(args)...)));
    }

  private:
    std::string located(std::uint64_t offset, const std::string& message) const;

    std::span<const std::byte> bytes_;
    std::string_view file_;
    std::uint64_t offset_ = 0;
    std::string_view kind_;
    std::string_view name_;
    std::uint64_t index_ = 0;
    std::uint64_t count_ = 0;
};

}  // namespace coterie::gguf
