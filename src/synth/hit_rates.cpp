#include "synth/hit_rates.h"

#include <algorithm>
#include <numeric>

namespace coterie::synth {
namespace {

constexpr double kShares[] = {0.25, 0.5, 0.75};

/// The experts of successive tokens: [tokens][used].
std::vector<std::int32_t> draw_trace(const RoutingModel& model, const HitRateOptions& options,
                                     SplitMix64& random) {
    const RoutingOptions& routing = model.options();
    const auto used = static_cast<std::size_t>(routing.used);
    std::vector<std::int32_t> trace(static_cast<std::size_t>(options.tokens) * used);
    std::vector<float> logits(2 * static_cast<std::size_t>(routing.experts));
    const auto random_topic = [&] {
        return static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(routing.topics));
    };
    std::int64_t topic = random_topic();
    for (std::size_t at = 0; at < trace.size(); at += used) {
        if (random.next() % static_cast<std::uint64_t>(options.topic_run) == 0) topic = random_topic();
        model.draw(random, topic, logits, std::span(trace).subspan(at, used));
    }
    return trace;
}

double static_hit_rate(std::span<const std::int32_t> trace, std::size_t experts, std::size_t slots) {
    const std::size_t half = trace.size() / 2;
    std::vector<std::int64_t> counts(experts);
    for (const std::int32_t expert : trace.first(half)) ++counts[static_cast<std::size_t>(expert)];
    std::vector<std::size_t> order(experts);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return counts[a] > counts[b]; });
    std::vector<bool> cached(experts);
    for (std::size_t i = 0; i < slots; ++i) cached[order[i]] = true;
    const auto hits = std::count_if(trace.begin() + static_cast<std::ptrdiff_t>(half), trace.end(),
                                    [&](std::int32_t e) { return cached[static_cast<std::size_t>(e)]; });
    return static_cast<double>(hits) / static_cast<double>(trace.size() - half);
}

/// A token's experts are looked up together before any of them moves: a step holds on to what it reads.
double recency_hit_rate(std::span<const std::int32_t> trace, std::size_t used, std::size_t slots) {
    std::vector<std::int32_t> recent;  // most recent last
    std::int64_t hits = 0;
    for (std::size_t at = 0; at < trace.size(); at += used) {
        const auto token = trace.subspan(at, used);
        const std::size_t before = recent.size();
        std::erase_if(recent, [&](std::int32_t e) { return std::ranges::find(token, e) != token.end(); });
        if (at >= trace.size() / 2) hits += static_cast<std::int64_t>(before - recent.size());
        recent.insert(recent.end(), token.begin(), token.end());
        if (recent.size() > slots)
            recent.erase(recent.begin(), recent.end() - static_cast<std::ptrdiff_t>(slots));
    }
    return static_cast<double>(hits) / static_cast<double>(trace.size() - trace.size() / 2);
}

}  // namespace

std::vector<HitRate> simulate_hit_rates(const RoutingModel& model, const HitRateOptions& options) {
    std::vector<HitRate> rates;
    for (const double share : kShares) rates.push_back({share, 0.0, 0.0});
    const auto experts = static_cast<std::size_t>(model.options().experts);
    const auto used = static_cast<std::size_t>(model.options().used);
    SplitMix64 random(model.options().seed ^ 0x417u);
    for (int layer = 0; layer < options.layers; ++layer) {
        const std::vector<std::int32_t> trace = draw_trace(model, options, random);
        for (HitRate& rate : rates) {
            const auto slots = static_cast<std::size_t>(rate.share * static_cast<double>(experts));
            rate.static_list += static_hit_rate(trace, experts, slots) / options.layers;
            rate.least_recently_used += recency_hit_rate(trace, used, slots) / options.layers;
        }
    }
    return rates;
}

}  // namespace coterie::synth
