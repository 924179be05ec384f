#include "sampling/logit_scan.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/error.h"

namespace coterie {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::size_t kLanes = 16;  ///< several SIMD registers, whose comparisons do not wait for each other

struct BlockFacts {
    float highest;   ///< of the allowed ones
    float any;       ///< the highest of all
    bool is_number;  ///< all are below +infinity, which NaN is not
};

/// Written so that compilers make SIMD of it: lanes that do not touch each other, selections in place of
/// branches.
BlockFacts look_at_block(const float* logits, std::uint64_t allowed) {
    std::array<float, kLanes> highest;
    std::array<float, kLanes> any;
    std::array<std::uint32_t, kLanes> invalid{};
    highest.fill(-kInfinity);
    any.fill(-kInfinity);
    for (std::size_t first = 0; first < LogitScan::kBlock; first += kLanes) {
        const auto bits = static_cast<std::uint32_t>(allowed >> first);
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            const float logit = logits[first + lane];
            const float wanted = (bits & (1u << lane)) != 0 ? logit : -kInfinity;
            highest[lane] = wanted > highest[lane] ? wanted : highest[lane];
            any[lane] = logit > any[lane] ? logit : any[lane];
            invalid[lane] |= logit < kInfinity ? 0u : 1u;
        }
    }
    BlockFacts facts{-kInfinity, -kInfinity, true};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
        facts.highest = std::max(facts.highest, highest[lane]);
        facts.any = std::max(facts.any, any[lane]);
        facts.is_number = facts.is_number && invalid[lane] == 0;
    }
    return facts;
}

BlockFacts look_at_rest(std::span<const float> logits, std::uint64_t allowed) {
    std::array<float, LogitScan::kBlock> block;
    block.fill(-kInfinity);
    std::copy(logits.begin(), logits.end(), block.begin());
    return look_at_block(block.data(), allowed);
}

[[noreturn]] void fail_invalid(std::span<const float> logits) {
    const auto bad =
        std::find_if(logits.begin(), logits.end(), [](float logit) { return !(logit < kInfinity); });
    fail(ErrorCode::Internal, "the model gave the logit {} for token {}; its file may be damaged", *bad,
         bad - logits.begin());
}

}  // namespace

std::uint64_t LogitScan::allowed_in(std::size_t block) const {
    if (allowed_.empty()) return ~std::uint64_t{0};
    return block < allowed_.size() ? allowed_[block] : 0;
}

void LogitScan::read(std::span<const float> logits, std::span<const std::uint64_t> allowed) {
    COTERIE_CHECK(!logits.empty() && logits.size() <= std::numeric_limits<std::int32_t>::max());
    logits_ = logits;
    allowed_ = allowed;
    highest_.resize((logits.size() + kBlock - 1) / kBlock);
    float any = -kInfinity;
    float highest = -kInfinity;
    bool numbers = true;
    for (std::size_t block = 0; block < highest_.size(); ++block) {
        const std::span<const float> rest = logits.subspan(block * kBlock);
        const BlockFacts facts = rest.size() >= kBlock ? look_at_block(rest.data(), allowed_in(block))
                                                       : look_at_rest(rest, allowed_in(block));
        highest_[block] = facts.highest;
        highest = std::max(highest, facts.highest);
        any = std::max(any, facts.any);
        numbers = numbers && facts.is_number;
    }
    if (!numbers) fail_invalid(logits);
    if (any == -kInfinity)
        fail(ErrorCode::Internal, "the model gave no token a finite logit; its file may be damaged");
    if (highest == -kInfinity)
        fail(ErrorCode::InvalidArgument, "the grammar allows no token that the model could write here");
}

/// What the `most` best tokens reach at least.
float LogitScan::reach(std::size_t most) {
    if (most >= highest_.size()) return -kInfinity;
    if (most <= 1) return *std::max_element(highest_.begin(), highest_.end());
    ordered_ = highest_;
    const auto place = ordered_.begin() + static_cast<std::ptrdiff_t>(most - 1);
    std::nth_element(ordered_.begin(), place, ordered_.end(), std::greater<>());
    return *place;
}

}  // namespace coterie
