#include "base/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "base/byte_size_text.h"
#include "base/error.h"

namespace coterie {

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".XXXXXX") {
    descriptor_ = mkostemp(temporary_.data(), O_CLOEXEC);
    if (descriptor_ < 0) fail(ErrorCode::Io, "cannot create {}: {}", path_, std::strerror(errno));
    removal_.emplace(temporary_);
}

AtomicFile::~AtomicFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {  // the system's call may take less than it is given
        const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) fail_write();
        written_ += static_cast<std::uint64_t>(count);
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
}

void AtomicFile::commit() {
    if (fsync(descriptor_) != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) fail_write();
    temporary_.clear();
    removal_.reset();
}

void AtomicFile::fail_write() const {
    const int error = errno;
    fail(ErrorCode::Io, "cannot write {}: {}; {} were written", path_, std::strerror(error),
         byte_size_text(written_));
}

}  // namespace coterie
