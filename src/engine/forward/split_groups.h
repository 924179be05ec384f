#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/aligned_buffer.h"
#include "quant/activation.h"

namespace coterie::engine {

/// Gate and up values of activation groups whose rows several workers compute; who brings a group's last rows
/// goes on with it.
class SplitGroups {
  public:
    explicit SplitGroups(std::int64_t groups)
        : gate_(static_cast<std::size_t>(groups * kGroupValues)),
          up_(static_cast<std::size_t>(groups * kGroupValues)),
          done_(std::make_unique<Done[]>(static_cast<std::size_t>(groups))),
          groups_(groups) {}

    std::int64_t groups() const { return groups_; }

    float* gate(std::int64_t group) { return gate_.data() + group * kGroupValues; }
    float* up(std::int64_t group) { return up_.data() + group * kGroupValues; }

    /// Says that `rows` more of the group's `of` rows are written. True for one worker, which then sees all;
    /// the group is as new then.
    bool completes(std::int64_t group, std::int64_t rows, std::int64_t of) {
        if (rows == of) return true;
        std::atomic<std::int64_t>& done = done_[static_cast<std::size_t>(group)].rows;
        if (done.fetch_add(rows, std::memory_order_acq_rel) + rows < of) return false;
        done.store(0, std::memory_order_relaxed);
        return true;
    }

  private:
    struct alignas(64) Done {
        std::atomic<std::int64_t> rows{0};
    };
    AlignedBuffer<float> gate_;
    AlignedBuffer<float> up_;
    std::unique_ptr<Done[]> done_;
    std::int64_t groups_;
};

}  // namespace coterie::engine
