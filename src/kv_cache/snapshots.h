#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/aligned_buffer.h"

namespace coterie {

/// The recurrent state as it was when the sequence had `position` tokens. Never changes, so forks share it.
struct Snapshot {
    std::int64_t position;
    AlignedBuffer<float> state;
};

/// Snapshots of one sequence, ordered by position, at most `limit` of them.
///
/// When full, the one whose neighbours lie closest together goes (position 0, which needs no snapshot, counts
/// as one), never the one just added. So a series of close ones keeps its newest, and older ones stay spread
/// over the sequence.
class SnapshotList {
  public:
    explicit SnapshotList(std::int64_t limit) : limit_(limit) {}

    /// Keeps a copy of `state`; replaces a snapshot of the same position. Does nothing with a limit of 0.
    /// Once the list is full, the memory of what goes is used again unless a fork shares it.
    void add(std::int64_t position, const AlignedBuffer<float>& state);

    /// The latest snapshot at or before `position`, or null.
    const Snapshot* latest(std::int64_t position) const;
    void drop_after(std::int64_t position);

    const std::vector<std::shared_ptr<const Snapshot>>& entries() const { return entries_; }
    std::int64_t limit() const { return limit_; }
    void check_integrity(std::int64_t length) const;

  private:
    std::shared_ptr<Snapshot> make_room(std::int64_t position, std::size_t floats);
    std::size_t most_crowded(std::int64_t newest) const;

    std::int64_t limit_;
    std::vector<std::shared_ptr<const Snapshot>> entries_;
};

}  // namespace coterie
