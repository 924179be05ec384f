#pragma once

#include <algorithm>
#include <cstdint>

namespace coterie::expert_cache {

/// When to try again what has failed: ever later while it goes on failing. Counts whatever the caller counts,
/// steps or nanoseconds.
class Backoff {
  public:
    /// Waits `first` after one failure, twice as long after each further one, at most `longest`.
    Backoff(std::int64_t first, std::int64_t longest) : first_(first), longest_(longest) {}

    void failed(std::int64_t now) {
        wait_ = wait_ == 0 ? first_ : std::min(2 * wait_, longest_);
        next_ = now + wait_;
    }
    void succeeded() { wait_ = 0; }
    bool may_try(std::int64_t now) const { return wait_ == 0 || now >= next_; }
    /// Whether the last attempt failed.
    bool failing() const { return wait_ != 0; }

  private:
    std::int64_t first_;
    std::int64_t longest_;
    std::int64_t wait_ = 0;  ///< 0: nothing has failed since it last worked
    std::int64_t next_ = 0;
};

}  // namespace coterie::expert_cache
