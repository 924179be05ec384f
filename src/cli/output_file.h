#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace coterie::cli {

/// A result written to a file that exists only when it is whole: under a temporary name beside the path until
/// `commit`, removed without it. "-" is standard output, which gets what is written as it comes.
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
    std::string temporary_;  ///< empty for standard output, and when committed
    std::FILE* file_;
};

}  // namespace coterie::cli
