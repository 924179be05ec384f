#include "kernels/cpu/route.h"

#include <algorithm>
#include <limits>

namespace coterie::cpu {
namespace {

constexpr float kDropped = -std::numeric_limits<float>::infinity();
constexpr float kSmallestSum = 6.103515625e-5f;  // 2^-14

/// The index of the largest score that is not taken; NaN never wins against a number.
std::int64_t best_of(const float* scores, std::int64_t count, const std::int32_t* taken,
                     std::int64_t taken_count) {
    std::int64_t best = -1;
    for (std::int64_t i = 0; i < count; ++i) {
        if (best >= 0 && !(scores[i] > scores[best])) continue;
        const auto* end = taken + taken_count;
        if (std::find(taken, end, static_cast<std::int32_t>(i)) == end) best = i;
    }
    return best;
}

float two_best_sum(const float* scores, std::int64_t count) {
    float first = kDropped;
    float second = kDropped;
    for (std::int64_t i = 0; i < count; ++i) {
        if (scores[i] > first) {
            second = first;
            first = scores[i];
        } else if (scores[i] > second) {
            second = scores[i];
        }
    }
    return count > 1 ? first + second : first;
}

void drop_weak_groups(const Routing& routing, float* scores, float* group_scores) {
    const std::int64_t size = routing.experts / routing.groups;
    for (std::int64_t g = 0; g < routing.groups; ++g) group_scores[g] = two_best_sum(scores + g * size, size);
    for (std::int64_t g = 0; g < routing.groups; ++g) {
        std::int64_t better = 0;
        for (std::int64_t other = 0; other < routing.groups; ++other) {
            const bool tie_lost = group_scores[other] == group_scores[g] && other < g;
            better += group_scores[other] > group_scores[g] || tie_lost;
        }
        if (better >= routing.groups_used) std::fill_n(scores + g * size, size, kDropped);
    }
}

}  // namespace

void route(const KernelTable& kernels, const Routing& routing, const float* logits,
           const float* selection_bias, float* scratch, std::int32_t* experts, float* weights) {
    float* probabilities = scratch;
    float* scores = scratch + routing.experts;
    switch (routing.gating) {
        case Gating::Softmax:
            kernels.softmax(logits, routing.experts, probabilities);
            break;
        case Gating::Sigmoid:
            kernels.sigmoid(logits, routing.experts, probabilities);
            break;
        case Gating::SoftmaxOfSelected:
            std::copy_n(logits, routing.experts, probabilities);
            break;
    }
    for (std::int64_t e = 0; e < routing.experts; ++e) {
        scores[e] = selection_bias ? probabilities[e] + selection_bias[e] : probabilities[e];
    }
    if (routing.groups > 1) drop_weak_groups(routing, scores, scratch + 2 * routing.experts);

    for (std::int64_t rank = 0; rank < routing.used; ++rank) {
        const std::int64_t best = best_of(scores, routing.experts, experts, rank);
        experts[rank] = static_cast<std::int32_t>(best);
        weights[rank] = probabilities[best];
    }
    if (routing.gating == Gating::SoftmaxOfSelected) kernels.softmax(weights, routing.used, weights);
    if (routing.normalise) {
        float sum = 0.0f;
        for (std::int64_t rank = 0; rank < routing.used; ++rank) sum += weights[rank];
        sum = std::max(sum, kSmallestSum);
        for (std::int64_t rank = 0; rank < routing.used; ++rank) weights[rank] /= sum;
    }
    for (std::int64_t rank = 0; rank < routing.used; ++rank) weights[rank] *= routing.scale;
}

}  // namespace coterie::cpu
