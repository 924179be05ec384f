#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "expert_cache/replay/replay_costs.h"
#include "expert_cache/replay/replay_tokens.h"

namespace coterie::expert_cache {

/// What a policy made of a trace.
struct ReplayResult {
    std::string policy;
    std::int32_t slots = 0;  ///< per layer
    std::int64_t tokens = 0;
    std::int64_t uses = 0;
    std::int64_t hits = 0;
    std::int64_t uploads = 0;
    double seconds = 0.0;  ///< modelled
    double upload_bytes = 0.0;

    double hit_rate() const {
        return uses == 0 ? 0.0 : static_cast<double>(hits) / static_cast<double>(uses);
    }
    double per_token(double sum) const { return sum / static_cast<double>(tokens); }
};

/// Decodes a trace's tokens in time as a cache of experts would.
///
/// A token's misses are offered to the policy when it ends, layer after layer and beginning one layer later
/// each time, so that a small budget serves all. Those admitted are uploaded as far as the budget goes,
/// beside the next tokens, and are resident from the first token on that begins after they landed. All slots
/// are empty at first.
///
/// A policy that keeps what a profile says begins with it, counted on this very trace: the best of all fixed
/// placements. A policy that knows the future begins full as well, and its uploads land at once and cost
/// nothing: no other one can have more hits.
class Replay {
  public:
    /// The tokens must outlive it, and there must be some.
    explicit Replay(const ReplayTokens& tokens);

    /// Throws InvalidArgument for an unknown policy. Requires: slots >= 0.
    ReplayResult run(std::string_view policy, std::int32_t slots, const ReplayCosts& costs);

  private:
    const ReplayTokens& tokens_;
    std::vector<FutureUses> future_;  ///< [layers], made when first needed
};

/// `percent` of the experts, rounded to at least one slot.
std::int32_t slots_of(double percent, std::int32_t experts);

}  // namespace coterie::expert_cache
