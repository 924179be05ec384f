#include "kv_cache/byte_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace coterie {
namespace {

[[noreturn]] void fail_cut(const std::string& name) {
    fail(ErrorCode::InvalidFile, "{}: the saved state is cut; delete it", name);
}

/// The system's calls may transfer less than asked for; 0 means the end.
template <typename Call>
std::size_t transfer(std::size_t bytes, Call call) {
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t count = call(done, bytes - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        done += static_cast<std::size_t>(count);
    }
    return done;
}

}  // namespace

void MemorySource::read(std::span<std::byte> bytes) {
    if (bytes.size() > bytes_.size() - position_) fail_cut(name_);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(position_), bytes.size(), bytes.begin());
    position_ += bytes.size();
}

FileSink::FileSink(std::string path) : path_(std::move(path)), temporary_(path_ + ".XXXXXX") {
    descriptor_ = mkostemp(temporary_.data(), O_CLOEXEC);
    if (descriptor_ < 0) {
        fail(ErrorCode::Io, "cannot create {}: {}", path_, std::strerror(errno));
    }
}

FileSink::~FileSink() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
}

void FileSink::write(std::span<const std::byte> bytes) {
    const std::size_t written = transfer(bytes.size(), [&](std::size_t done, std::size_t left) {
        return ::write(descriptor_, bytes.data() + done, left);
    });
    if (written < bytes.size()) fail(ErrorCode::Io, "cannot write {}: {}", path_, std::strerror(errno));
}

void FileSink::commit() {
    const bool flushed = fsync(descriptor_) == 0;
    if (!flushed || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
        fail(ErrorCode::Io, "cannot write {}: {}", path_, std::strerror(errno));
    }
    temporary_.clear();
}

FileSource::FileSource(std::string path) : path_(std::move(path)) {
    // O_NONBLOCK: opening a pipe must not wait for its other end.
    descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor_ < 0 && errno == ELOOP) {
        fail(ErrorCode::InvalidFile, "{}: is a symbolic link, which saved states may not be", path_);
    }
    if (descriptor_ < 0) fail(ErrorCode::NotFound, "cannot open {}: {}", path_, std::strerror(errno));
    struct stat status {};
    if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(descriptor_);
        fail(ErrorCode::InvalidFile, "{}: is not a regular file", path_);
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
}

FileSource::~FileSource() { close(descriptor_); }

void FileSource::read(std::span<std::byte> bytes) {
    errno = 0;
    const std::size_t count = transfer(bytes.size(), [&](std::size_t done, std::size_t left) {
        return ::read(descriptor_, bytes.data() + done, left);
    });
    if (count == bytes.size()) return;
    if (errno != 0) fail(ErrorCode::Io, "cannot read {}: {}", path_, std::strerror(errno));
    fail_cut(path_);
}

}  // namespace coterie
