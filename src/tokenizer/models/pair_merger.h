#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace coterie {

/// A stretch of text that is one unit of a merge in progress.
struct MergeSymbol {
    std::uint32_t begin;  ///< offset in the text
    std::uint32_t bytes;
    std::int32_t value;  ///< what it is; the rule's own numbering
};

/// What two neighbours become. The lowest rank merges first.
struct Merge {
    std::int32_t rank;
    std::int32_t value;
};

/// Merges neighbours by rank until no two can merge: the loop that both algorithms share. Of equal ranks the
/// leftmost merges first. O(n log n) for n symbols.
///
/// A queue holds every pair that can merge, and goes stale where a neighbour has merged meanwhile; such
/// entries are seen by their length, since symbols only grow. Keep one merger for many texts: it keeps its
/// memory.
class PairMerger {
  public:
    static constexpr std::size_t kMaxTextBytes = std::numeric_limits<std::int32_t>::max();

    /// Starts a text of at most kMaxTextBytes bytes.
    void clear() { nodes_.clear(); }

    /// Adds the next symbol of the text.
    void add(const MergeSymbol& symbol) {
        const auto index = static_cast<std::uint32_t>(nodes_.size());
        nodes_.push_back({symbol, index - 1, index + 1});
    }

    /// `rule(left, right)` tells whether and how two symbols merge: std::optional<Merge>.
    template <typename Rule>
    void merge(const Rule& rule) {
        queue_.clear();
        for (std::uint32_t left = 0; left + 1 < nodes_.size(); ++left) consider(left, rule);
        std::make_heap(queue_.begin(), queue_.end(), comes_later);
        while (!queue_.empty()) {
            std::pop_heap(queue_.begin(), queue_.end(), comes_later);
            const Candidate candidate = queue_.back();
            queue_.pop_back();
            if (is_stale(candidate)) continue;
            join(candidate);
            reconsider(candidate.left, rule);
        }
    }

    /// Calls `visit(symbol)` for the symbols that are left, in order.
    template <typename Visit>
    void for_each(const Visit& visit) const {
        for (std::size_t index = 0; index < nodes_.size(); index = nodes_[index].next)
            visit(nodes_[index].symbol);
    }

  private:
    struct Node {
        MergeSymbol symbol;  ///< 0 bytes: merged into its left neighbour
        std::uint32_t previous;
        std::uint32_t next;  ///< nodes_.size() after the last one
    };
    struct Candidate {
        Merge merge;
        std::uint32_t left;
        std::uint32_t bytes;  ///< of both symbols together when the candidate was found
    };

    static bool comes_later(const Candidate& a, const Candidate& b) {
        return a.merge.rank != b.merge.rank ? a.merge.rank > b.merge.rank : a.left > b.left;
    }

    /// Queues the pair that starts at `left`, if it can merge. Requires: it has a right neighbour.
    template <typename Rule>
    bool consider(std::uint32_t left, const Rule& rule) {
        const MergeSymbol& a = nodes_[left].symbol;
        const MergeSymbol& b = nodes_[nodes_[left].next].symbol;
        const std::optional<Merge> merge = rule(a, b);
        if (merge) queue_.push_back({*merge, left, a.bytes + b.bytes});
        return merge.has_value();
    }

    template <typename Rule>
    void reconsider(std::uint32_t joined, const Rule& rule) {
        if (joined > 0 && consider(nodes_[joined].previous, rule)) {
            std::push_heap(queue_.begin(), queue_.end(), comes_later);
        }
        if (nodes_[joined].next < nodes_.size() && consider(joined, rule)) {
            std::push_heap(queue_.begin(), queue_.end(), comes_later);
        }
    }

    bool is_stale(const Candidate& candidate) const {
        const Node& left = nodes_[candidate.left];
        if (left.symbol.bytes == 0 || left.next == nodes_.size()) return true;
        return left.symbol.bytes + nodes_[left.next].symbol.bytes != candidate.bytes;
    }

    void join(const Candidate& candidate) {
        Node& left = nodes_[candidate.left];
        Node& right = nodes_[left.next];
        left.symbol.bytes = candidate.bytes;
        left.symbol.value = candidate.merge.value;
        right.symbol.bytes = 0;
        left.next = right.next;
        if (left.next < nodes_.size()) nodes_[left.next].previous = candidate.left;
    }

    std::vector<Node> nodes_;
    std::vector<Candidate> queue_;
};

}  // namespace coterie
