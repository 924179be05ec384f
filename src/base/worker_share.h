#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace coterie {

/// [begin, end) of some range.
struct IndexRange {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t size() const { return end - begin; }
};

/// Worker `worker`'s part of [0, count) where `workers` share it out in one stretch each, whole units of
/// `unit` (the last may be cut off by `count`).
inline IndexRange worker_share(std::int64_t count, std::int64_t unit, int worker, int workers) {
    const std::int64_t units = (count + unit - 1) / unit;
    const auto edge = [&](std::int64_t w) { return std::min(units * w / workers * unit, count); };
    return {edge(worker), edge(worker + 1)};
}

/// Memory that is wanted soon, asked for a few lines at a time, towards the second-level cache.
class StretchPrefetch {
  public:
    StretchPrefetch() = default;
    StretchPrefetch(const std::byte* data, std::int64_t bytes)
        : next_(data), left_(std::max<std::int64_t>(bytes, 0)) {}

    bool done() const { return left_ == 0; }
    /// Asks for the next lines, so few that the caller is back within some tens of nanoseconds.
    void step() {
        for (int line = 0; line < kLinesPerStep && left_ > 0; ++line) {
            __builtin_prefetch(next_, 0, 2);
            const std::int64_t bytes = std::min(left_, kLineBytes);
            next_ += bytes;
            left_ -= bytes;
        }
    }

  private:
    static constexpr std::int64_t kLineBytes = 64;
    static constexpr int kLinesPerStep =
        8;  ///< a core has 10 to 16 misses of its first-level cache in flight

    const std::byte* next_ = nullptr;
    std::int64_t left_ = 0;
};

}  // namespace coterie
