#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "scheduler/prefix/prefix_tree.h"

namespace coterie::scheduler {

/// Sequences that nobody works on, kept so that a prompt that begins as they do need not be read again. Pages
/// are shared with running sequences, so keeping costs only what no one else holds. The least recently used
/// goes first.
class PrefixCache {
  public:
    using Id = PrefixTree::Id;

    /// `limit`: sequences kept at most. It bounds what lies outside the pages (recurrent states).
    explicit PrefixCache(std::size_t limit) : limit_(limit) {}

    /// Keeps a sequence, and drops those that it contains whole. Nothing for an empty one.
    std::optional<Id> park(engine::Sequence sequence);

    struct Found {
        Id id;
        std::int64_t length;  ///< tokens of the prompt that it can give, recurrent states considered
    };
    /// The sequence that gives the most of `tokens`, at most `limit` of them.
    std::optional<Found> find(std::span<const TokenId> tokens, std::int64_t limit) const;

    /// A sequence of the first `found.length` tokens. The kept one is taken where it has no more tokens than
    /// that, else it stays and shares its pages.
    engine::Sequence take(const Found& found);

    const engine::Sequence* get(Id id) const;
    void drop(Id id);
    /// Drops the least recently used one. False where there is none.
    bool evict();

    std::size_t size() const { return kept_.size(); }
    std::uint64_t evictions() const { return evictions_; }

  private:
    struct Kept {
        engine::Sequence sequence;
        std::uint64_t last_use;
    };

    void drop_contained(std::span<const TokenId> tokens);

    std::size_t limit_;
    std::map<Id, Kept> kept_;
    PrefixTree tree_;
    Id next_id_ = 1;
    std::uint64_t uses_ = 0;
    std::uint64_t evictions_ = 0;
};

}  // namespace coterie::scheduler
