#include "scheduler/prefix/prefix_cache.h"

#include <algorithm>
#include <utility>

namespace coterie::scheduler {

std::optional<PrefixCache::Id> PrefixCache::park(engine::Sequence sequence) {
    if (sequence.length() == 0 || limit_ == 0) return std::nullopt;
    drop_contained(sequence.tokens());
    while (kept_.size() >= limit_) evict();
    const Id id = next_id_++;
    tree_.insert(id, sequence.tokens());
    kept_.emplace(id, Kept{std::move(sequence), ++uses_});
    return id;
}

void PrefixCache::drop_contained(std::span<const TokenId> tokens) {
    for (const PrefixTree::Match& match : tree_.matches(tokens)) {
        if (kept_.at(match.id).sequence.length() == match.length) drop(match.id);
    }
}

std::optional<PrefixCache::Found> PrefixCache::find(std::span<const TokenId> tokens,
                                                    std::int64_t limit) const {
    std::optional<Found> best;
    for (const PrefixTree::Match& match : tree_.matches(tokens)) {
        const engine::Sequence& sequence = kept_.at(match.id).sequence;
        const std::int64_t length = sequence.restorable(std::min(match.length, limit));
        if (length > 0 && (!best || length > best->length)) best = Found{match.id, length};
    }
    return best;
}

engine::Sequence PrefixCache::take(const Found& found) {
    Kept& kept = kept_.at(found.id);
    kept.last_use = ++uses_;
    if (kept.sequence.length() == found.length) {
        engine::Sequence sequence = std::move(kept.sequence);
        drop(found.id);
        return sequence;
    }
    engine::Sequence sequence = kept.sequence.fork();
    sequence.truncate(found.length);
    return sequence;
}

const engine::Sequence* PrefixCache::get(Id id) const {
    const auto found = kept_.find(id);
    return found == kept_.end() ? nullptr : &found->second.sequence;
}

void PrefixCache::drop(Id id) {
    tree_.remove(id);
    kept_.erase(id);
}

bool PrefixCache::evict() {
    const auto oldest = std::min_element(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) {
        return a.second.last_use < b.second.last_use;
    });
    if (oldest == kept_.end()) return false;
    ++evictions_;
    drop(oldest->first);
    return true;
}

}  // namespace coterie::scheduler
