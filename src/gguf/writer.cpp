#include "gguf/writer.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <unistd.h>
#include <utility>

#include "base/byte_size_text.h"
#include "base/error.h"
#include "base/temporary_path.h"

namespace coterie::gguf {
namespace {

/// A file under a temporary name beside its target, removed unless it was given its name.
class PendingFile {
  public:
    PendingFile(const std::filesystem::path& target, std::uint64_t bytes)
        : target_(target.string()),
          temporary_(target_ + ".tmp-" + std::to_string(::getpid())),
          removal_(temporary_),
          wanted_(bytes) {
        file_.reset(std::fopen(temporary_.c_str(), "wbx"));  // x: never into a file that exists
        if (!file_) fail_system("create");
    }
    ~PendingFile() {
        if (!temporary_.empty()) std::remove(temporary_.c_str());
    }
    PendingFile(const PendingFile&) = delete;
    PendingFile& operator=(const PendingFile&) = delete;

    /// Takes the space now, so that a full disk shows before hours of writing. Best effort: not every file
    /// system can.
    void reserve() {
        if (::fallocate(::fileno(file_.get()), 0, 0, static_cast<off_t>(wanted_)) != 0 && errno == ENOSPC) {
            fail(ErrorCode::Io,
                 "{}: the file takes {}, which this disk has not free; free some or write elsewhere", target_,
                 byte_size_text(wanted_));
        }
    }

    void write(std::span<const std::byte> bytes) {
        const std::size_t count = std::fwrite(bytes.data(), 1, bytes.size(), file_.get());
        written_ += count;
        if (count != bytes.size()) fail_system("write");
    }

    void commit(Overwrite overwrite) {
        if (std::fflush(file_.get()) != 0 || ::fsync(::fileno(file_.get())) != 0) fail_system("write");
        if (std::fclose(file_.release()) != 0) fail_system("close");
        if (rename(overwrite) != 0) fail_system("rename");
        temporary_.clear();
    }

  private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };

    int rename(Overwrite overwrite) const {
        if (overwrite == Overwrite::No) {
            // Also keeps a file that appeared while this one was written.
            const int result =
                ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE);
            if (result == 0 || errno != EINVAL) return result;  // EINVAL: the file system has no such rename
        }
        return std::rename(temporary_.c_str(), target_.c_str());
    }

    [[noreturn]] void fail_system(const char* action) const {
        const int error = errno;
        fail(ErrorCode::Io, "{}: cannot {} the file: {}; {} of {} were written", target_, action,
             std::strerror(error), byte_size_text(written_), byte_size_text(wanted_));
    }

    std::string target_;
    std::string temporary_;
    TemporaryPath removal_;
    std::uint64_t wanted_;       ///< bytes of the whole file
    std::uint64_t written_ = 0;  ///< of them
    std::unique_ptr<std::FILE, Close> file_;
};

void refuse_existing(const std::filesystem::path& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) return;
    fail(ErrorCode::InvalidArgument,
         "{}: exists already and is kept; choose another name or allow overwriting", path.string());
}

/// A device or a pipe of that name would be replaced.
void refuse_special(const std::filesystem::path& path) {
    std::error_code ignored;
    const auto status = std::filesystem::status(path, ignored);
    if (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status)) return;
    fail(ErrorCode::InvalidArgument, "{}: is no regular file; choose another name", path.string());
}

void stream(const Header& header, TensorOutput::Sink sink, TensorSource source) {
    const std::vector<std::byte> padding(header.alignment());
    sink(header.serialise());
    for (std::size_t i = 0; i < header.tensors().size(); ++i) {
        TensorOutput output(sink, header.tensor_bytes(i));
        source(i, output);
        COTERIE_CHECK(output.left() == 0);
        const std::uint64_t past = header.tensor_bytes(i) % header.alignment();
        if (past != 0) sink(std::span(padding).first(header.alignment() - past));
    }
}

}  // namespace

void TensorOutput::append(std::span<const std::byte> bytes) {
    COTERIE_CHECK(bytes.size() <= left_);
    left_ -= bytes.size();
    sink_(bytes);
}

void write_file(const std::filesystem::path& path, const Header& header, Overwrite overwrite,
                TensorSource source) {
    if (overwrite == Overwrite::No) refuse_existing(path);
    refuse_special(path);
    PendingFile file(path, header.file_bytes());
    file.reserve();
    stream(
        header, [&](std::span<const std::byte> bytes) { file.write(bytes); }, source);
    file.commit(overwrite);
}

std::vector<std::byte> write_bytes(const Header& header, TensorSource source) {
    std::vector<std::byte> result;
    stream(
        header,
        [&](std::span<const std::byte> bytes) { result.insert(result.end(), bytes.begin(), bytes.end()); },
        source);
    return result;
}

}  // namespace coterie::gguf
