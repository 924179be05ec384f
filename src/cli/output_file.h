#pragma once

#include <cstddef>
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
    /// Throws Io naming the path.
    explicit OutputFile(std::string path);
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
};

}  // namespace coterie::cli
