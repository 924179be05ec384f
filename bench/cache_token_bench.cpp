// What the expert cache costs per token: 48 layers of 128 experts, 8 used, routed with a skew that drifts, so
// that experts are admitted and evicted all the time. Copies go to a device that does nothing.
//
// route: the lookups, between a step's begin and its end. end: learning and admission. evict: what the
// cache's own thread does until the next token: uploads, publication, eviction. Medians. Warm: token after
// token; cold: 2 MiB of other data are read before each step, so that the tables stand in the last level of
// the CPU's caches only. Usage: cache_token_bench [TOKENS]

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "base/split_mix.h"
#include "expert_cache/expert_cache.h"
#include "expert_cache/policy/registry.h"
#include "null_device.h"

namespace coterie::expert_cache {
namespace {

constexpr std::int32_t kLayers = 48;
constexpr std::int32_t kExperts = 128;
constexpr std::int32_t kUsed = 8;
constexpr std::uint64_t kExpertBytes = 4096;
constexpr std::uint64_t kSeed = 1;

/// Distinct experts by a power law over a permutation of each layer that changes slowly.
class Routing {
  public:
    Routing() : order_(kLayers) {
        for (auto& order : order_) {
            for (std::int32_t e = 0; e < kExperts; ++e) order.push_back(e);
            for (std::size_t i = order.size() - 1; i > 0; --i)
                std::swap(order[i], order[random_.next() % (i + 1)]);
        }
    }
    void token(std::int32_t layer, std::int32_t* experts) {
        auto& order = order_[static_cast<std::size_t>(layer)];
        std::swap(order[random_.next() % kExperts], order[random_.next() % kExperts]);
        for (std::int32_t used = 0; used < kUsed;) {
            const auto rank = static_cast<std::size_t>(std::pow(kExperts, random_.next_float())) - 1;
            const std::int32_t expert = order[rank];
            if (std::find(experts, experts + used, expert) == experts + used) experts[used++] = expert;
        }
    }

  private:
    SplitMix64 random_{kSeed};
    std::vector<std::vector<std::int32_t>> order_;
};

double now_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

enum class Tables { Warm, Cold };

/// Drives the tables out of the CPU's own caches.
class Sweep {
  public:
    std::uint64_t run() const { return std::accumulate(data_.begin(), data_.end(), std::uint64_t{0}); }

  private:
    std::vector<std::uint64_t> data_ = std::vector<std::uint64_t>(std::size_t{2} << 17, 1);
};

/// Of each token, in seconds.
struct Times {
    std::vector<double> routed;
    std::vector<double> end;
    std::vector<double> maintenance;
    std::vector<double> all;
};

/// The median: other work on the machine disturbs some tokens much.
double median_us(std::vector<double> seconds) {
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return 1e6 * *middle;
}

/// `sum`: keeps the lookups from being left out.
void run_token(ExpertCache& cache, Routing& routing, Tables tables, Times& times, std::uint64_t& sum) {
    static const Sweep sweep;
    std::int32_t experts[kLayers][kUsed];
    for (std::int32_t layer = 0; layer < kLayers; ++layer) routing.token(layer, experts[layer]);
    if (tables == Tables::Cold) sum += sweep.run();
    const double start = now_seconds();
    double routed = 0;
    {
        CacheStep step = cache.begin_step();
        for (std::int32_t layer = 0; layer < kLayers; ++layer) {
            step.routed(layer, experts[layer], kUsed);
            ResidentExpert found[kUsed];
            cache.find(layer, experts[layer], found);
            for (const ResidentExpert& expert : found) sum += static_cast<std::uint64_t>(expert.address) + 1;
        }
        routed = now_seconds();
    }
    const double end = now_seconds();
    while (cache.maintain()) {
    }
    const double maintained = now_seconds();
    times.routed.push_back(routed - start);
    times.end.push_back(end - routed);
    times.maintenance.push_back(maintained - end);
    times.all.push_back(maintained - start);
}

void run(std::int64_t tokens, std::int32_t slots, std::uint64_t uploads, Tables tables) {
    SimulatedClock clock;
    coterie::bench::NullDevice device;
    const std::vector<std::byte> bytes(kExpertBytes);
    CacheOptions options;
    options.slots.assign(1, std::vector<std::int32_t>(kLayers, slots));
    options.maintenance = Maintenance::Manual;
    options.poison_freed = false;
    options.uploads.bytes_per_token = uploads * kExpertBytes;
    options.uploads.queue_length = static_cast<std::int32_t>(uploads);
    const auto source = [&](ExpertKey) {
        return HostExpert{.pieces = {bytes, {}, {}}, .memory = HostMemory::Pinned};
    };
    const auto policies = [](std::int32_t, std::int32_t experts, std::int32_t of_layer) {
        return make_policy(kDefaultPolicy, {.experts = experts, .slots = of_layer});
    };
    ExpertCache cache({&device}, std::vector<LayerShape>(kLayers, {kExperts, kExpertBytes}), source, policies,
                      clock, options);
    Routing routing;
    Times times;
    std::uint64_t sum = 0;
    CacheStatistics before;
    for (std::int64_t token = -tokens / 4; token < tokens; ++token) {
        if (token == 0) {
            times = {};
            before = cache.statistics();
        }
        run_token(cache, routing, tables, times, sum);
    }
    const CacheStatistics after = cache.statistics();
    const auto hits = static_cast<double>(after.hits - before.hits);
    const auto evictions = static_cast<double>(after.devices[0].evictions - before.devices[0].evictions);
    std::printf("%5d  %5.1f %%  %11.2f  %8.2f  %8.2f  %8.2f  %8.2f%s\n", slots,
                100 * hits / (hits + static_cast<double>(after.misses - before.misses)),
                evictions / static_cast<double>(tokens), median_us(times.routed), median_us(times.end),
                median_us(times.maintenance), median_us(times.all), sum == 0 ? "!" : "");
}

}  // namespace
}  // namespace coterie::expert_cache

int main(int argc, char** argv) {
    using coterie::expert_cache::Tables;
    const std::int64_t tokens = argc > 1 ? std::atoll(argv[1]) : 4000;
    std::printf("slots     hits  evictions/t  route us    end us  evict us    all us\n");
    // 8 experts of 2.5 MB are what a link of 24 GB/s moves in 0.8 ms.
    for (const std::uint64_t uploads : {8, 32}) {
        for (const Tables tables : {Tables::Warm, Tables::Cold}) {
            std::printf("at most %d uploads a token, %s\n", static_cast<int>(uploads),
                        tables == Tables::Warm ? "warm" : "cold");
            for (const std::int32_t slots : {16, 32, 64, 96, 128})
                coterie::expert_cache::run(tokens, slots, uploads, tables);
        }
    }
}
