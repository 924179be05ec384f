#include <algorithm>
#include <cmath>

#include "sampling/samplers/samplers.h"

namespace coterie {
namespace {

/// More than any logit, and far from what a float cannot hold.
constexpr double kLargestPenalty = 1e9;

}  // namespace

Dry::Dry(float multiplier, float base, std::int64_t allowed_length, std::int64_t window,
         std::vector<std::int32_t> breakers)
    : multiplier_(multiplier),
      base_(base),
      allowed_length_(allowed_length),
      window_(window),
      breakers_(std::move(breakers)) {
    std::sort(breakers_.begin(), breakers_.end());
}

void Dry::accept(std::int32_t token) { history_.push_back(token); }

bool Dry::is_breaker(std::int32_t token) const {
    return std::binary_search(breakers_.begin(), breakers_.end(), token);
}

void Dry::apply(Candidates& candidates, Random&) {
    find_continuations();
    if (continuations_.empty()) return;
    candidates.change_logits([&](const Candidate& candidate) {
        const auto found =
            std::lower_bound(continuations_.begin(), continuations_.end(), candidate.id,
                             [](const Continuation& entry, std::int32_t id) { return entry.token < id; });
        if (found == continuations_.end() || found->token != candidate.id) return candidate.logit;
        const double penalty =
            multiplier_ * std::pow(base_, static_cast<double>(found->length - allowed_length_));
        return candidate.logit - static_cast<float>(std::min(penalty, kLargestPenalty));
    });
}

void Dry::find_continuations() {
    continuations_.clear();
    const auto length = static_cast<std::int64_t>(history_.size());
    const std::int64_t count = window_ < 0 ? length : std::min(window_, length);
    const std::span<const std::int32_t> tokens(history_.data() + (length - count),
                                               static_cast<std::size_t>(count));
    const auto last_breaker =
        std::find_if(tokens.rbegin(), tokens.rend(), [&](std::int32_t token) { return is_breaker(token); });
    find_repeats(tokens, last_breaker - tokens.rbegin());

    const std::int64_t shortest = std::max<std::int64_t>(allowed_length_, 1);
    for (std::int64_t back = 1; back < count; ++back) {
        const std::int64_t repeated = repeats_[static_cast<std::size_t>(back)];
        const std::int32_t next = tokens[static_cast<std::size_t>(count - back)];
        if (repeated >= shortest && !is_breaker(next)) continuations_.push_back({next, repeated});
    }
    std::sort(continuations_.begin(), continuations_.end(), [](const Continuation& a, const Continuation& b) {
        return a.token != b.token ? a.token < b.token : a.length > b.length;
    });
    const auto same_token = [](const Continuation& a, const Continuation& b) { return a.token == b.token; };
    continuations_.erase(std::unique(continuations_.begin(), continuations_.end(), same_token),
                         continuations_.end());
}

/// The Z function of the reversed tokens, which takes linear time: [begin, end) is the match found so far
/// that reaches furthest back, and inside it earlier results hold again.
void Dry::find_repeats(std::span<const std::int32_t> tokens, std::int64_t longest) {
    const auto count = static_cast<std::int64_t>(tokens.size());
    const auto from_end = [&](std::int64_t i) { return tokens[static_cast<std::size_t>(count - 1 - i)]; };
    if (repeats_.size() < tokens.size()) repeats_.resize(tokens.size());
    std::int64_t begin = 0;
    std::int64_t end = 0;
    for (std::int64_t back = 1; back < count; ++back) {
        std::int64_t equal = 0;
        if (back < end) equal = std::min(end - back, repeats_[static_cast<std::size_t>(back - begin)]);
        while (back + equal < count && equal < longest && from_end(equal) == from_end(back + equal)) ++equal;
        if (back + equal > end) {
            begin = back;
            end = back + equal;
        }
        repeats_[static_cast<std::size_t>(back)] = equal;
    }
}

}  // namespace coterie
