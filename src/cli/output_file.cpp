#include "cli/output_file.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"

namespace coterie::cli {

OutputFile::OutputFile(std::string path) : path_(std::move(path)), file_(stdout) {
    if (path_ == "-") return;
    temporary_ = fmt::format("{}.tmp-{}", path_, getpid());
    file_ = std::fopen(temporary_.c_str(), "wbx");
    if (!file_) refuse("written");
}

OutputFile::~OutputFile() {
    if (temporary_.empty()) return;
    std::fclose(file_);
    std::remove(temporary_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) refuse("written");
}

void OutputFile::commit() {
    if (std::fflush(file_) != 0) refuse("written");
    if (temporary_.empty()) return;
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) refuse("replaced");
    std::fclose(file_);
    temporary_.clear();
}

void OutputFile::refuse(const char* what) const {
    const int error = errno;
    fail(ErrorCode::Io, "{}: cannot be {}: {}", path_ == "-" ? "standard output" : path_, what,
         std::strerror(error));
}

}  // namespace coterie::cli
