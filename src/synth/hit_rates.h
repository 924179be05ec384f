#pragma once

#include <cstdint>
#include <vector>

#include "synth/routing_model.h"

namespace coterie::synth {

/// How tokens follow each other in the simulation.
struct HitRateOptions {
    std::int64_t tokens = 4096;
    std::int64_t topic_run = 64;  ///< mean length of a stretch of tokens of one topic
    int layers = 4;               ///< simulated, with other tokens each, to steady the figures
};

/// Expected hit rates where `share` of each layer's experts is cached.
struct HitRate {
    double share;
    double static_list;          ///< the most used experts of the first half, counted over the second half
    double least_recently_used;  ///< counted over the second half
};

/// Hit rates at 25 %, 50 % and 75 % of the experts for random tokens.
std::vector<HitRate> simulate_hit_rates(const RoutingModel& model, const HitRateOptions& options);

}  // namespace coterie::synth
