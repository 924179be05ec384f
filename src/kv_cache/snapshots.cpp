#include "kv_cache/snapshots.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace coterie {
namespace {

bool position_before(std::int64_t position, const std::shared_ptr<const Snapshot>& entry) {
    return position < entry->position;
}

}  // namespace

void SnapshotList::add(std::int64_t position, const AlignedBuffer<float>& state) {
    if (limit_ == 0) return;
    const std::shared_ptr<Snapshot> snapshot = make_room(position, state.size());
    snapshot->position = position;
    std::copy_n(state.data(), state.size(), snapshot->state.data());
    entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), position, position_before), snapshot);
}

std::shared_ptr<Snapshot> SnapshotList::make_room(std::int64_t position, std::size_t floats) {
    std::size_t victim = entries_.size();
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        if (entries_[i]->position == position) victim = i;
    }
    if (victim == entries_.size() && static_cast<std::int64_t>(entries_.size()) >= limit_) {
        victim = most_crowded(position);
    }
    std::shared_ptr<const Snapshot> removed;
    if (victim < entries_.size()) {
        removed = std::move(entries_[victim]);
        entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(victim));
    }
    // Every snapshot is made as a mutable object below; only a sole owner may write it again.
    if (removed && removed.use_count() == 1) return std::const_pointer_cast<Snapshot>(removed);
    return std::make_shared<Snapshot>(Snapshot{position, AlignedBuffer<float>(floats)});
}

std::size_t SnapshotList::most_crowded(std::int64_t newest) const {
    std::size_t best = 0;
    std::int64_t best_gap = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        const std::int64_t before = i == 0 ? 0 : entries_[i - 1]->position;
        const std::int64_t after = i + 1 < entries_.size() ? entries_[i + 1]->position : newest;
        if (after - before < best_gap) {
            best_gap = after - before;
            best = i;
        }
    }
    return best;
}

const Snapshot* SnapshotList::latest(std::int64_t position) const {
    const auto after = std::upper_bound(entries_.begin(), entries_.end(), position, position_before);
    return after == entries_.begin() ? nullptr : std::prev(after)->get();
}

void SnapshotList::drop_after(std::int64_t position) {
    entries_.erase(std::upper_bound(entries_.begin(), entries_.end(), position, position_before),
                   entries_.end());
}

void SnapshotList::check_integrity(std::int64_t length) const {
    COTERIE_CHECK(static_cast<std::int64_t>(entries_.size()) <= limit_);
    std::int64_t previous = 0;
    for (const auto& entry : entries_) {
        COTERIE_CHECK(entry->position > previous && entry->position <= length);
        previous = entry->position;
    }
}

}  // namespace coterie
