#include "cli/output_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

#include "base/byte_size_text.h"
#include "base/error.h"

namespace coterie::cli {

namespace fs = std::filesystem;

OutputFile::OutputFile(std::string path, std::uint64_t wanted)
    : path_(std::move(path)), file_(stdout), wanted_(wanted) {
    if (path_ == "-") return;
    std::error_code ignored;
    const fs::file_status status = fs::status(path_, ignored);
    if (fs::exists(status) && !fs::is_regular_file(status)) {
        file_ = std::fopen(path_.c_str(), "wb");
        if (!file_) refuse("written");
        return;
    }
    if (fs::is_symlink(fs::symlink_status(path_, ignored)))
        path_ = fs::weakly_canonical(path_, ignored).string();
    temporary_ = fmt::format("{}.tmp-{}", path_, getpid());
    removal_.emplace(temporary_);
    file_ = std::fopen(temporary_.c_str(), "wbx");
    if (!file_) refuse("written");
}

OutputFile::~OutputFile() {
    if (file_ != nullptr && file_ != stdout) std::fclose(file_);
    if (!temporary_.empty()) std::remove(temporary_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
    const std::size_t count = std::fwrite(bytes.data(), 1, bytes.size(), file_);
    written_ += count;
    if (count != bytes.size()) refuse("written");
}

void OutputFile::commit() {
    if (std::fflush(file_) != 0) refuse("written");
    if (temporary_.empty()) return;
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) refuse("replaced");
    temporary_.clear();
    removal_.reset();
}

void OutputFile::refuse(const char* what) const {
    const int error = errno;
    const std::string name = path_ == "-" ? "standard output" : path_;
    const std::string all = wanted_ > 0 ? fmt::format(" of {}", byte_size_text(wanted_)) : "";
    fail(ErrorCode::Io, "{}: cannot be {}: {}; {}{} were written", name, what, std::strerror(error),
         byte_size_text(written_), all);
}

}  // namespace coterie::cli
