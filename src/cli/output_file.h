#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/temporary_path.h"

namespace coterie::cli {

/// A result written to a file that exists only when it is whole: under a temporary name beside the path until
/// `commit`, removed without it. A link's target is written. "-" is standard output, which gets what is
/// written as it comes, and so do devices and pipes.
class OutputFile {
  public:
    /// `wanted`: bytes of the whole, for messages; 0: not known. Throws Io naming the path, and how much was
    /// written.
    explicit OutputFile(std::string path, std::uint64_t wanted = 0);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(std::span<const std::byte> bytes);
    void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

    /// Ends the output; an existing file of that name is replaced.
    void commit();

  private:
    [[noreturn]] void refuse(const char* what) const;

    std::string path_;
    std::string temporary_;  ///< empty for what gets all at once, and when committed
    std::optional<TemporaryPath> removal_;
    std::FILE* file_;
    std::uint64_t wanted_;
    std::uint64_t written_ = 0;
};

}  // namespace coterie::cli
