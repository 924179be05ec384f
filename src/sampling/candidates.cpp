#include "sampling/candidates.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace coterie {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

[[noreturn]] void fail_invalid(std::span<const float> logits) {
    const auto bad =
        std::find_if(logits.begin(), logits.end(), [](float logit) { return !(logit < kInfinity); });
    fail(ErrorCode::Internal, "the model gave the logit {} for token {}; its file may be damaged", *bad,
         bad - logits.begin());
}

}  // namespace

void Candidates::load(std::span<const float> logits) {
    COTERIE_CHECK(!logits.empty() && logits.size() <= std::numeric_limits<std::int32_t>::max());
    items_.resize(logits.size());
    bool valid = true;
    bool possible = false;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        valid &= logits[i] < kInfinity;  // false for NaN, too
        possible |= logits[i] > -kInfinity;
        items_[i] = {static_cast<std::int32_t>(i), logits[i], 0.0f};
    }
    sorted_ = 0;
    has_probabilities_ = false;
    if (!valid) fail_invalid(logits);
    if (!possible)
        fail(ErrorCode::Internal, "the model gave no token a finite logit; its file may be damaged");
}

void Candidates::keep_allowed(std::span<const std::uint64_t> mask) {
    std::size_t kept = 0;
    bool possible = false;
    for (std::size_t word = 0; word < mask.size(); ++word) {
        for (std::uint64_t bits = mask[word]; bits != 0; bits &= bits - 1) {
            const std::size_t id = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
            if (id >= items_.size()) break;
            possible |= items_[id].logit > -kInfinity;
            items_[kept++] = items_[id];
        }
    }
    items_.resize(kept);
    if (!possible)
        fail(ErrorCode::InvalidArgument, "the grammar allows no token that the model could write here");
}

void Candidates::scale_logits(float factor) {
    for (Candidate& candidate : items_) candidate.logit *= factor;
    has_probabilities_ = false;
}

void Candidates::sort_prefix(std::size_t count) {
    count = std::min(count, items_.size());
    if (count <= sorted_) return;
    sort_places(sorted_, count, ranks_before);
    sorted_ = count;
}

void Candidates::keep_first(std::size_t count) {
    count = std::max<std::size_t>(count, 1);
    if (count >= items_.size()) return;
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(count), items_.end());
    sorted_ = std::min(sorted_, count);
    has_probabilities_ = false;
}

void Candidates::softmax() {
    if (has_probabilities_) return;
    const float highest = max_logit();
    double sum = 0;
    for (Candidate& candidate : items_) {
        candidate.probability = std::exp(candidate.logit - highest);
        sum += candidate.probability;
    }
    for (Candidate& candidate : items_) {
        candidate.probability = static_cast<float>(candidate.probability / sum);
    }
    has_probabilities_ = true;
}

float Candidates::max_logit() const { return best().logit; }

const Candidate& Candidates::best() const {
    return sorted_ > 0 ? items_.front() : *std::min_element(items_.begin(), items_.end(), ranks_before);
}

}  // namespace coterie
