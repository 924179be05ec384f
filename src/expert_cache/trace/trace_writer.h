#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "expert_cache/trace/trace_format.h"

namespace coterie::expert_cache {

/// Writes a trace while it happens. What was written when the program ends early reads as a cut trace.
class TraceWriter {
  public:
    /// Replaces a file of that name. Throws Io, and InvalidArgument for a header that no trace can have.
    TraceWriter(std::string path, TraceHeader header);
    /// Without `finish` the file stays cut.
    ~TraceWriter();
    TraceWriter(const TraceWriter&) = delete;
    TraceWriter& operator=(const TraceWriter&) = delete;

    const TraceHeader& header() const { return header_; }
    std::int64_t tokens() const { return static_cast<std::int64_t>(records_); }

    /// The experts of one token, [layers][used] with -1 for none. `step` is 0 for the first token and then
    /// that of the token before, or one more. Takes no memory; writes a full buffer now and then, and throws
    /// Io.
    void add(std::uint32_t step, std::span<const std::int32_t> experts);

    /// Writes the rest and closes the file; nothing may be added then. Throws Io.
    void finish();

  private:
    void append(std::span<const std::byte> bytes);
    void flush();
    [[noreturn]] void give_up();

    std::string path_;
    TraceHeader header_;
    std::vector<std::byte> record_;
    std::vector<std::byte> buffer_;
    std::uint64_t records_ = 0;
    int descriptor_ = -1;
};

}  // namespace coterie::expert_cache
