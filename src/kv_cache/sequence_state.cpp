#include "kv_cache/sequence_state.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace coterie {

SequenceState::SequenceState(const StateLayout& layout, BlockPool& pool, const SequenceOptions& options)
    : layout_(&layout),
      pool_(&pool),
      pages_(layout, pool),
      recurrent_(layout.recurrent_floats()),
      snapshots_(options.snapshot_limit) {
    COTERIE_CHECK(pool.page_bytes() == layout.page_bytes());
    COTERIE_CHECK(options.snapshot_limit >= 0);
}

/// A partly filled last page that others hold is replaced before it is written.
bool SequenceState::copies_last_page(std::int64_t n) const {
    return n > 0 && length_ % kPageTokens > 0 && pages_.size() > 0 && pages_.shared(length_ / kPageTokens);
}

std::int64_t SequenceState::pages_missing(std::int64_t n) const {
    COTERIE_CHECK(n >= 0 && n <= std::numeric_limits<std::int64_t>::max() - kPageTokens - length_);
    return std::max<std::int64_t>(pages_needed(length_ + n) - pages_.size(), 0) +
           (copies_last_page(n) ? 1 : 0);
}

bool SequenceState::prepare(std::int64_t n) {
    const std::int64_t missing = pages_missing(n);
    if (static_cast<std::uint64_t>(missing) > pool_->free_pages()) return false;
    const bool copies = copies_last_page(n);
    if (copies) pages_.make_private(length_ / kPageTokens, length_ % kPageTokens);
    pages_.grow(missing - (copies ? 1 : 0));
    prepared_ = length_ + n;
    return true;
}

void SequenceState::advance(std::int64_t n) {
    COTERIE_CHECK(n >= 0 && length_ + n <= prepared_);
    length_ += n;
}

void SequenceState::snapshot() {
    if (recurrent_.size() > 0 && length_ > 0) snapshots_.add(length_, recurrent_);
}

std::int64_t SequenceState::restorable(std::int64_t n) const {
    COTERIE_CHECK(n >= 0 && n <= length_);
    if (recurrent_.size() == 0 || n == length_) return n;
    const Snapshot* snapshot = snapshots_.latest(n);
    return snapshot ? snapshot->position : 0;
}

std::int64_t SequenceState::truncate(std::int64_t n) {
    const std::int64_t target = restorable(n);
    if (target < length_) restore_recurrent(target);
    shorten(target);
    return target;
}

std::int64_t SequenceState::abandon_step() {
    std::int64_t target = length_;
    if (recurrent_.size() > 0) {
        const Snapshot* snapshot = snapshots_.latest(length_);
        target = snapshot ? snapshot->position : 0;
        restore_recurrent(target);
    }
    shorten(target);
    return target;
}

/// To the snapshot of that position, or to the start.
void SequenceState::restore_recurrent(std::int64_t position) {
    const Snapshot* snapshot = snapshots_.latest(position);
    if (snapshot) {
        std::copy_n(snapshot->state.data(), recurrent_.size(), recurrent_.data());
    } else {
        std::fill_n(recurrent_.data(), recurrent_.size(), 0.0f);
    }
}

void SequenceState::shorten(std::int64_t length) {
    snapshots_.drop_after(length);
    pages_.drop_to(pages_needed(length));
    length_ = prepared_ = length;
}

SequenceState SequenceState::fork() const {
    SequenceState other(*layout_, *pool_, {.snapshot_limit = snapshots_.limit()});
    other.pages_ = pages_.share(pages_needed(length_));
    other.snapshots_ = snapshots_;
    std::copy_n(recurrent_.data(), recurrent_.size(), other.recurrent_.data());
    other.length_ = other.prepared_ = length_;
    return other;
}

void SequenceState::check_integrity() const {
    COTERIE_CHECK(length_ >= 0 && length_ <= prepared_);
    COTERIE_CHECK(pages_.size() >= pages_needed(prepared_));
    pages_.check_integrity();
    snapshots_.check_integrity(length_);
    for (std::int64_t page = pages_needed(length_); page < pages_.size(); ++page) {
        COTERIE_CHECK(!pages_.shared(page));
    }
}

}  // namespace coterie
