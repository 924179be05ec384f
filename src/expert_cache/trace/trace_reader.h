#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "expert_cache/trace/trace_format.h"

namespace coterie::expert_cache {

/// A trace in memory, checked as a whole when it is opened; reading tokens then cannot fail.
class TraceReader {
  public:
    /// Borrows the bytes. A trace that was cut is read up to the cut, which `warning` says. Throws
    /// InvalidFile with the offset where bytes are no trace, are damaged, or contradict each other.
    TraceReader(std::span<const std::byte> bytes, std::string name);

    const TraceHeader& header() const { return header_; }
    std::int64_t tokens() const { return tokens_; }
    /// One line where the trace is not whole, else empty.
    const std::string& warning() const { return warning_; }

    /// Tokens computed together share a step; steps count from 0 without gaps.
    std::uint32_t step(std::int64_t token) const;

    /// Fills [layers][used] with the token's experts, -1 behind the last of a layer that used fewer.
    void read(std::int64_t token, std::span<std::int32_t> experts) const;

  private:
    const std::byte* record(std::int64_t token) const;
    std::size_t read_header();
    void read_records();
    void check_record(std::size_t offset) const;
    void check_experts(std::size_t offset, std::span<const std::int32_t> experts,
                       std::span<std::int64_t> last_seen) const;
    void read_trailer(std::size_t offset);
    void end_at_cut();
    [[noreturn]] void fail_at(std::size_t offset, const std::string& what) const;

    std::span<const std::byte> bytes_;
    std::string name_;
    TraceHeader header_;
    std::size_t first_record_ = 0;  ///< offset
    std::size_t record_bytes_ = 0;
    std::int64_t tokens_ = 0;
    std::string warning_;
};

}  // namespace coterie::expert_cache
