#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace coterie {

/// Looks through the logits of a whole vocabulary for the few that may be drawn, without copying the rest.
///
/// One pass finds the highest logit of each block of 64 tokens. At least `most` tokens reach the height of
/// the block that is number `most` among the blocks, so only blocks that reach it can hold one of the best.
class LogitScan {
  public:
    static constexpr std::size_t kBlock = 64;  ///< a word of a mask of tokens
    static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

    /// Reads them, of all tokens or of those that a mask allows: bit `id % 64` of word `id / 64`; ids beyond
    /// the mask are not allowed. Both must live as long as this is asked. Allocates only when the vocabulary
    /// grew. Throws Internal where any logit is NaN or +infinity, naming its token, or none is finite
    /// (-infinity is a token that cannot be drawn), and InvalidArgument where no allowed token has a finite
    /// one.
    void read(std::span<const float> logits, std::span<const std::uint64_t> allowed = {});

    /// Calls `take(id, logit)` by ascending ids for every allowed token that may be among the `most` best,
    /// and perhaps for others.
    template <typename Take>
    void each_of_best(std::size_t most, Take take) {
        const float least = reach(most);
        for (std::size_t block = 0; block < highest_.size(); ++block) {
            if (highest_[block] < least) continue;
            for (std::size_t id = block * kBlock; id < std::min(logits_.size(), (block + 1) * kBlock); ++id) {
                if (logits_[id] >= least && is_allowed(id)) take(static_cast<std::int32_t>(id), logits_[id]);
            }
        }
    }

    bool is_allowed(std::size_t id) const {
        if (allowed_.empty()) return true;
        return id / kBlock < allowed_.size() && ((allowed_[id / kBlock] >> (id % kBlock)) & 1) != 0;
    }
    float logit(std::size_t id) const { return logits_[id]; }

  private:
    float reach(std::size_t most);
    std::uint64_t allowed_in(std::size_t block) const;

    std::span<const float> logits_;
    std::span<const std::uint64_t> allowed_;
    std::vector<float> highest_;  ///< [blocks] of the allowed ones
    std::vector<float> ordered_;  ///< scratch of `reach`
};

}  // namespace coterie
