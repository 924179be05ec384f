#include "expert_cache/trace/trace_writer.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"

namespace coterie::expert_cache {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{64} << 10;

[[noreturn]] void fail_write(const std::string& path) {
    fail(ErrorCode::Io, "cannot write the trace {}: {}", path, std::strerror(errno));
}

}  // namespace

TraceWriter::TraceWriter(std::string path, TraceHeader header)
    : path_(std::move(path)), header_(std::move(header)) {
    if (const char* why = trace_format::objection(header_)) {
        fail(ErrorCode::InvalidArgument, "cannot record a trace: {}", why);
    }
    record_.resize(trace_format::record_bytes(header_));
    buffer_.reserve(kBufferBytes + record_.size());
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor_ < 0) fail_write(path_);
    append(trace_format::encode_header(header_));
    flush();
}

TraceWriter::~TraceWriter() {
    if (descriptor_ < 0) return;
    try {
        flush();
    } catch (const Error&) {  // the file is cut in any case
    }
    close(descriptor_);
}

void TraceWriter::add(std::uint32_t step, std::span<const std::int32_t> experts) {
    COTERIE_CHECK(descriptor_ >= 0);
    trace_format::encode_record(header_, records_++, step, experts, record_.data());
    append(record_);
}

void TraceWriter::finish() {
    COTERIE_CHECK(descriptor_ >= 0);
    append(trace_format::encode_trailer(records_));
    flush();
    if (close(std::exchange(descriptor_, -1)) != 0) fail_write(path_);
}

/// What stands in the file reads as cut, and nothing may follow it.
void TraceWriter::give_up() {
    const int error = errno;
    close(std::exchange(descriptor_, -1));
    errno = error;
    fail_write(path_);
}

void TraceWriter::append(std::span<const std::byte> bytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    if (buffer_.size() >= kBufferBytes) flush();
}

void TraceWriter::flush() {
    std::span<const std::byte> rest = buffer_;
    while (!rest.empty()) {  // the system's call may take less than it is given
        const ssize_t count = write(descriptor_, rest.data(), rest.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) give_up();
        rest = rest.subspan(static_cast<std::size_t>(count));
    }
    buffer_.clear();
}

}  // namespace coterie::expert_cache
