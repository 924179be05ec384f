#include "sampling/candidates.h"

#include <cmath>

namespace coterie {
namespace {

bool id_before(const Candidate& a, const Candidate& b) { return a.id < b.id; }

}  // namespace

void Candidates::load(std::span<const float> logits, const Wanted& wanted) {
    scan_.read(logits, wanted.allowed);
    sorted_ = 0;
    has_probabilities_ = false;
    if (wanted.most == LogitScan::kAll && wanted.allowed.empty()) return load_all(logits);
    items_.clear();
    items_.reserve(logits.size());  // memory that is not touched costs nothing
    scan_.each_of_best(wanted.most, [&](std::int32_t id, float logit) {
        items_.push_back({id, logit, 0.0f});
    });
    take(wanted.also);
}

void Candidates::load_all(std::span<const float> logits) {
    items_.resize(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i)
        items_[i] = {static_cast<std::int32_t>(i), logits[i], 0.0f};
}

/// Adds those that are not there yet, in their places.
void Candidates::take(std::span<const std::int32_t> ids) {
    const std::size_t loaded = items_.size();
    for (const std::int32_t id : ids) {
        const auto end = items_.begin() + static_cast<std::ptrdiff_t>(loaded);
        const Candidate wanted{id, scan_.logit(static_cast<std::size_t>(id)), 0.0f};
        const bool known = std::binary_search(items_.begin(), end, wanted, id_before);
        if (!known && scan_.is_allowed(static_cast<std::size_t>(id))) items_.push_back(wanted);
    }
    if (items_.size() > loaded) std::sort(items_.begin(), items_.end(), id_before);
}

void Candidates::add_to_logit(std::int32_t id, float difference) {
    const auto place = std::lower_bound(items_.begin(), items_.end(), Candidate{id, 0.0f, 0.0f}, id_before);
    if (place == items_.end() || place->id != id) return;
    place->logit += difference;
    has_probabilities_ = false;
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
