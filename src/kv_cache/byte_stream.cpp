#include "kv_cache/byte_stream.h"

#include <algorithm>
#include <cerrno>
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

}  // namespace

void MemorySource::read(std::span<std::byte> bytes) {
    if (bytes.size() > bytes_.size() - position_) fail_cut(name_);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(position_), bytes.size(), bytes.begin());
    position_ += bytes.size();
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
    while (!bytes.empty()) {  // the system's call may give less than it is asked for
        const ssize_t count = ::read(descriptor_, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail(ErrorCode::Io, "cannot read {}: {}", path_, std::strerror(errno));
        if (count == 0) fail_cut(path_);
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
}

}  // namespace coterie
