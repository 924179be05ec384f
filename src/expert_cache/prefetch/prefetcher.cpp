#include "expert_cache/prefetch/prefetcher.h"

#include <algorithm>

#include "base/error.h"

namespace coterie::expert_cache {

Prefetch parse_prefetch(std::string_view name) {
    if (name == "off") return Prefetch::Off;
    if (name == "router") return Prefetch::Router;
    if (name == "temporal") return Prefetch::Temporal;
    if (name == "both") return Prefetch::Both;
    fail(ErrorCode::InvalidArgument, "--prefetch {}: use off, router, temporal or both", name);
}

Prefetcher::Prefetcher(std::span<const LayerShape> layers, Prefetch mode) : mode_(mode) {
    std::size_t most = 0;
    for (const LayerShape& layer : layers) {
        const auto experts = static_cast<std::size_t>(layer.experts);
        layers_.push_back({std::vector<std::uint8_t>(experts, 0)});
        most = std::max(most, experts);
    }
    predicted_.reserve(most);
}

void Prefetcher::add(Guesses& guesses, std::int32_t expert) {
    std::uint8_t& state = guesses.state[static_cast<std::size_t>(expert)];
    if ((state & kPredicted) != 0) return;
    state |= kPredicted;
    predicted_.push_back(expert);
}

std::span<const std::int32_t> Prefetcher::predict(std::int32_t layer, std::span<const std::int32_t> guessed) {
    predicted_.clear();
    Guesses& guesses = layers_[static_cast<std::size_t>(layer)];
    if (uses_router()) {
        for (const std::int32_t expert : guessed) add(guesses, expert);
    }
    if (mode_ == Prefetch::Temporal || mode_ == Prefetch::Both) {
        for (std::size_t e = 0; e < guesses.state.size(); ++e) {
            if ((guesses.state[e] & kChosenBefore) != 0) add(guesses, static_cast<std::int32_t>(e));
        }
    }
    return predicted_;
}

void Prefetcher::started(std::int32_t layer, std::int32_t expert) {
    layers_[static_cast<std::size_t>(layer)].state[static_cast<std::size_t>(expert)] |= kStarted;
}

void Prefetcher::mark_chosen(std::int32_t layer, std::span<const std::int32_t> chosen) {
    Guesses& guesses = layers_[static_cast<std::size_t>(layer)];
    for (const std::int32_t expert : chosen) guesses.state[static_cast<std::size_t>(expert)] |= kChosen;
}

/// Counts, and makes what was chosen now what was chosen before.
void Prefetcher::close(std::int32_t layer) {
    for (std::uint8_t& state : layers_[static_cast<std::size_t>(layer)].state) {
        if ((state & kPredicted) != 0) {
            ++statistics_.predicted;
            if ((state & kChosen) != 0) ++statistics_.right;
            if ((state & kStarted) != 0) ++statistics_.started;
        }
        state = (state & kChosen) != 0 ? kChosenBefore : 0;
    }
}

}  // namespace coterie::expert_cache
