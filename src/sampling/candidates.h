#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sampling/logit_scan.h"

namespace coterie {

struct Candidate {
    std::int32_t id;
    float logit;
    float probability;  ///< meaningful after Candidates::softmax()
};

/// Higher logits first, equal ones by id: a total order, so that every selection has one result.
inline bool ranks_before(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

/// The tokens that may still be drawn. Samplers change their logits, remove some of them or reorder them.
///
/// At first they stand in the order of their ids. Sorting is lazy: only as many leading candidates are
/// brought into order as a sampler asks for, because a vocabulary has 150,000 tokens and a draw looks at a
/// few dozen.
class Candidates {
  public:
    /// Of which tokens candidates are wanted.
    struct Wanted {
        std::span<const std::uint64_t> allowed = {};  ///< a mask as LogitScan has it; empty: all
        std::size_t most = LogitScan::kAll;           ///< only the best ones count: others may be left out
        std::span<const std::int32_t> also = {};      ///< wanted however low they are; ascending
    };

    /// Starts again from the logits of the whole vocabulary. Allocates only when the vocabulary grew.
    /// Throws what LogitScan throws.
    void load(std::span<const float> logits, const Wanted& wanted);
    void load(std::span<const float> logits) { load(logits, Wanted{}); }

    std::size_t size() const { return items_.size(); }
    const Candidate& operator[](std::size_t i) const { return items_[i]; }
    std::span<const Candidate> items() const { return items_; }

    /// Calls `change(candidate)` -> new logit for each.
    template <typename Change>
    void change_logits(Change change) {
        for (Candidate& candidate : items_) candidate.logit = change(candidate);
        sorted_ = 0;
        has_probabilities_ = false;
    }
    /// Adds to the logit of one token, where it is among them. Requires: the candidates are as loaded.
    void add_to_logit(std::int32_t id, float difference);
    /// Multiplies all logits by a positive factor, which keeps their order.
    void scale_logits(float factor);

    /// Brings the first `count` in rank order to the front.
    void sort_prefix(std::size_t count);
    /// Keeps the smallest set, taken in the order `before` (a total one), whose probability reaches `p`; at
    /// least one. Requires current probabilities.
    template <typename Before>
    void keep_mass(double p, Before before);
    /// Removes all but the first `count`, of which at least one stays.
    void keep_first(std::size_t count);
    /// Removes those for which `drop(candidate)` holds, unless that would be all.
    template <typename Drop>
    void remove_if(Drop drop) {
        const auto kept = [&](const Candidate& candidate) { return !drop(candidate); };
        if (std::none_of(items_.begin(), items_.end(), kept)) return;
        std::erase_if(items_, drop);
        sorted_ = std::min(sorted_, items_.size());
        has_probabilities_ = false;
    }

    /// Probabilities of those that are left; they add up to 1. Costs nothing when they are current.
    void softmax();

    float max_logit() const;
    /// The highest logit, the lowest id on ties.
    const Candidate& best() const;

  private:
    /// Up to here one pass with a small heap is faster than a selection, which moves most items.
    static constexpr std::size_t kHeapSelection = 512;

    void load_all(std::span<const float> logits);
    void take(std::span<const std::int32_t> ids);
    /// Sorts the items that belong into places [from, to), where those before `from` are in place already.
    template <typename Before>
    void sort_places(std::size_t from, std::size_t to, Before before);

    LogitScan scan_;
    std::vector<Candidate> items_;
    std::size_t sorted_ = 0;  ///< this many leading items are the best ones, in rank order
    bool has_probabilities_ = false;
};

template <typename Before>
void Candidates::sort_places(std::size_t from, std::size_t to, Before before) {
    const auto first = items_.begin() + static_cast<std::ptrdiff_t>(from);
    const auto last = items_.begin() + static_cast<std::ptrdiff_t>(to);
    if (to - from <= kHeapSelection) {
        std::partial_sort(first, last, items_.end(), before);
    } else {
        if (last != items_.end()) std::nth_element(first, last, items_.end(), before);
        std::sort(first, last, before);
    }
}

template <typename Before>
void Candidates::keep_mass(double p, Before before) {
    // Such a set is small as a rule: sort a few, and many more each time that they do not suffice.
    std::size_t in_place = 0;
    std::size_t next = 64;
    std::size_t kept = 0;
    for (double sum = 0; kept == 0 || (sum < p && kept < items_.size()); ++kept) {
        if (kept == in_place) {
            next = std::min(next, items_.size());
            sort_places(in_place, next, before);
            in_place = next;
            next *= 8;
        }
        sum += items_[kept].probability;
    }
    sorted_ = 0;
    keep_first(kept);
}

}  // namespace coterie
