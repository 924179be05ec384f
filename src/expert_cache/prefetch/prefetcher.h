#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "expert_cache/slots/layer_shape.h"

namespace coterie::expert_cache {

/// How the experts of the next layer are guessed.
enum class Prefetch {
    Off,
    Router,    ///< the next layer's router, given this layer's input
    Temporal,  ///< what the last step chose there
    Both,
};

/// "off", "router", "temporal" or "both"; throws InvalidArgument for anything else.
Prefetch parse_prefetch(std::string_view name);

/// Counts since the start, of predictions whose layer has come.
struct PrefetchStatistics {
    std::uint64_t predicted = 0;
    std::uint64_t right = 0;    ///< the layer's router chose the expert
    std::uint64_t started = 0;  ///< it was not resident and an upload began
    std::uint64_t in_time = 0;  ///< started, right, and resident when its layer came
    std::uint64_t late = 0;     ///< started, right, and not there yet
};

/// Guesses which experts a layer will use, and keeps the score. Used by one thread.
class Prefetcher {
  public:
    Prefetcher(std::span<const LayerShape> layers, Prefetch mode);

    bool uses_router() const { return mode_ == Prefetch::Router || mode_ == Prefetch::Both; }

    /// The experts to have ready for `layer`, each once; `guessed` by its router where that is used. Valid
    /// until the next call.
    std::span<const std::int32_t> predict(std::int32_t layer, std::span<const std::int32_t> guessed);
    /// An upload of a predicted expert began.
    void started(std::int32_t layer, std::int32_t expert);

    /// The layer came: `chosen` by its router for all tokens, repeats allowed; `resident(expert)` now.
    template <typename Resident>
    void score(std::int32_t layer, std::span<const std::int32_t> chosen, const Resident& resident) {
        mark_chosen(layer, chosen);
        Guesses& guesses = layers_[static_cast<std::size_t>(layer)];
        for (std::size_t e = 0; e < guesses.state.size(); ++e) {
            if ((guesses.state[e] & kStarted) != 0 && (guesses.state[e] & kChosen) != 0) {
                ++(resident(static_cast<std::int32_t>(e)) ? statistics_.in_time : statistics_.late);
            }
        }
        close(layer);
    }

    const PrefetchStatistics& statistics() const { return statistics_; }

  private:
    static constexpr std::uint8_t kPredicted = 1;
    static constexpr std::uint8_t kStarted = 2;
    static constexpr std::uint8_t kChosen = 4;
    static constexpr std::uint8_t kChosenBefore = 8;

    struct Guesses {
        std::vector<std::uint8_t> state;  ///< [experts]
    };
    void add(Guesses& guesses, std::int32_t expert);
    void mark_chosen(std::int32_t layer, std::span<const std::int32_t> chosen);
    void close(std::int32_t layer);

    Prefetch mode_;
    std::vector<Guesses> layers_;
    std::vector<std::int32_t> predicted_;  ///< reserved once
    PrefetchStatistics statistics_;
};

}  // namespace coterie::expert_cache
