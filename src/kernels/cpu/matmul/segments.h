#pragma once

#include <cstdint>

namespace coterie::cpu::matmul {

/// Walks over a row's groups and says where the eight segments of the law end.
class SegmentEnds {
  public:
    explicit SegmentEnds(std::int64_t groups) : groups_(groups), end_(groups / 8) {}

    /// Moves on by `count` (at most 8) groups; bit g is set where a segment ends with the g-th of them.
    unsigned advance(int count) {
        unsigned ends = 0;
        while (segment_ < 8 && end_ <= position_ + count) {
            if (end_ > position_) ends |= 1u << (end_ - position_ - 1);
            ++segment_;
            end_ = (segment_ + 1) * groups_ / 8;
        }
        position_ += count;
        return ends;
    }

  private:
    std::int64_t groups_;
    std::int64_t position_ = 0;
    std::int64_t segment_ = 0;
    std::int64_t end_;  ///< one past the current segment's last group
};

}  // namespace coterie::cpu::matmul
