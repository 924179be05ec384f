#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace coterie::expert_cache {

/// A few lists of experts in order of recency, an expert in one of them at most. No operation takes memory;
/// all but the search take constant time.
///
/// Nodes are indices: those of the experts first, then one per list, which closes that list to a ring.
class ExpertLists {
  public:
    static constexpr int kNone = -1;
    static constexpr double kAboveOrders = 0x1p52;  ///< more than any `order`

    ExpertLists(std::int32_t experts, int lists)
        : experts_(experts),
          nodes_(static_cast<std::size_t>(experts + lists)),
          sizes_(static_cast<std::size_t>(lists)) {
        for (std::int32_t ring = experts; ring < experts + lists; ++ring) link(ring, ring);
    }

    /// The list that the expert is in, or kNone.
    int list_of(std::int32_t expert) const { return node(expert).list; }
    std::int32_t size(int list) const { return sizes_[static_cast<std::size_t>(list)]; }
    /// Grows with every move: the larger, the more recent. 0: never in a list.
    std::uint64_t order(std::int32_t expert) const { return node(expert).order; }
    /// The least recent expert. Requires: the list is not empty.
    std::int32_t oldest(int list) const { return node(experts_ + list).next; }

    /// The least recent of the candidates that are in the list, or -1. Quick where most of the list's oldest
    /// are candidates, as they are when only what a running step reads is left out.
    std::int32_t oldest_among(int list, std::span<const std::int32_t> candidates) const {
        const std::int32_t ring = experts_ + list;
        for (std::int32_t expert = node(ring).next; expert != ring; expert = node(expert).next) {
            if (contains(candidates, expert)) return expert;
        }
        return -1;
    }

    /// Makes the expert the most recent one of the list.
    void move_to(int list, std::int32_t expert) {
        remove(expert);
        const std::int32_t ring = experts_ + list;
        link(node(ring).previous, expert);
        link(expert, ring);
        node(expert).list = list;
        node(expert).order = ++clock_;
        ++sizes_[static_cast<std::size_t>(list)];
    }
    void remove(std::int32_t expert) {
        const int list = list_of(expert);
        if (list == kNone) return;
        link(node(expert).previous, node(expert).next);
        node(expert).list = kNone;
        --sizes_[static_cast<std::size_t>(list)];
    }

  private:
    struct Node {
        std::int32_t next;
        std::int32_t previous;
        std::int32_t list = kNone;
        std::uint64_t order = 0;
    };

    /// To the end in any case: a loop without an early exit is one of vectors.
    static bool contains(std::span<const std::int32_t> experts, std::int32_t wanted) {
        std::int32_t found = 0;
        for (const std::int32_t expert : experts) found |= expert == wanted;
        return found != 0;
    }
    Node& node(std::int32_t index) { return nodes_[static_cast<std::size_t>(index)]; }
    const Node& node(std::int32_t index) const { return nodes_[static_cast<std::size_t>(index)]; }
    void link(std::int32_t before, std::int32_t after) {
        node(before).next = after;
        node(after).previous = before;
    }

    std::int32_t experts_;
    std::vector<Node> nodes_;
    std::vector<std::int32_t> sizes_;
    std::uint64_t clock_ = 0;
};

}  // namespace coterie::expert_cache
