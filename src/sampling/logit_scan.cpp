#include "sampling/logit_scan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "base/error.h"

namespace coterie {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Vectors of four, as g++ and clang++ have them: every x86-64 processor does with them what it does with one
// number.
using Floats = float __attribute__((vector_size(16)));
using Words = std::int32_t __attribute__((vector_size(16)));
constexpr std::size_t kLanes = 4;
constexpr std::size_t kVectors = 4;  ///< whose comparisons do not wait for each other

struct BlockFacts {
    float highest;   ///< of the allowed ones
    float any;       ///< the highest of all
    bool is_number;  ///< all are below +infinity, which NaN is not
};

float highest_lane(Floats lanes) {
    return std::max(std::max(lanes[0], lanes[1]), std::max(lanes[2], lanes[3]));
}

BlockFacts look_at_block(const float* logits, std::uint64_t allowed) {
    constexpr Floats kLowest = {-kInfinity, -kInfinity, -kInfinity, -kInfinity};
    constexpr Words kLaneBits = {1, 2, 4, 8};
    std::array<Floats, kVectors> highest = {kLowest, kLowest, kLowest, kLowest};
    std::array<Floats, kVectors> any = highest;
    Words invalid = {};
    for (std::size_t first = 0; first < LogitScan::kBlock; first += kVectors * kLanes) {
        for (std::size_t i = 0; i < kVectors; ++i) {
            const std::size_t at = first + i * kLanes;
            Floats values;
            std::memcpy(&values, logits + at, sizeof values);
            const auto bits = static_cast<std::int32_t>(allowed >> at & 15);
            const Words chosen = (Words{bits, bits, bits, bits} & kLaneBits) != 0;
            const Floats wanted = chosen ? values : kLowest;
            highest[i] = wanted > highest[i] ? wanted : highest[i];
            any[i] = values > any[i] ? values : any[i];
            invalid |= ~(values < kInfinity);
        }
    }
    BlockFacts facts{-kInfinity, -kInfinity, (invalid[0] | invalid[1] | invalid[2] | invalid[3]) == 0};
    for (std::size_t i = 0; i < kVectors; ++i) {
        facts.highest = std::max(facts.highest, highest_lane(highest[i]));
        facts.any = std::max(facts.any, highest_lane(any[i]));
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
