// What the expert cache costs the thread that decodes, per token: 48 layers of 128 experts, 8 used, routed
// with a skew that drifts, so that experts are admitted and evicted all the time. Copies go to a fake device
// whose clock stands still while the token runs; what the upload thread would do is measured apart (it
// contains the fake's own work). Usage: cache_token_bench [TOKENS]

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <time.h>
#include <vector>

#include "base/split_mix.h"
#include "devices/fake_device.h"
#include "expert_cache/expert_cache.h"
#include "expert_cache/policy/registry.h"

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

double thread_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Of each token, in seconds.
struct Times {
    std::vector<double> routed;
    std::vector<double> end;
    std::vector<double> maintenance;
};

/// The median: other work on the machine disturbs some tokens much.
double median_us(std::vector<double> seconds) {
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return 1e6 * *middle;
}

/// `sum`: keeps the lookups from being left out.
void run_token(ExpertCache& cache, Routing& routing, Times& times, std::uint64_t& sum) {
    std::int32_t experts[kLayers][kUsed];
    for (std::int32_t layer = 0; layer < kLayers; ++layer) routing.token(layer, experts[layer]);
    const double start = thread_seconds();
    double routed = 0;
    {
        CacheStep step = cache.begin_step();
        for (std::int32_t layer = 0; layer < kLayers; ++layer) {
            step.routed(layer, experts[layer], kUsed);
            for (const std::int32_t expert : experts[layer]) {
                const auto found = cache.find({layer, expert});
                sum += found ? static_cast<std::uint64_t>(found->address) : 1;
            }
        }
        routed = thread_seconds();
    }
    const double end = thread_seconds();
    times.routed.push_back(routed - start);
    times.end.push_back(end - routed);
}

void run(std::int64_t tokens, std::int32_t slots, std::uint64_t uploads) {
    SimulatedClock clock;
    FakeMachine machine(clock, {{.memory_bytes = std::uint64_t{1} << 30, .granularity_bytes = 4096}}, 0);
    const std::vector<std::byte> bytes(kExpertBytes);
    CacheOptions options;
    options.slots.assign(1, std::vector<std::int32_t>(kLayers, slots));
    options.maintenance = Maintenance::Manual;
    options.uploads.bytes_per_token = uploads * kExpertBytes;
    options.uploads.queue_length = static_cast<std::int32_t>(uploads);
    const auto source = [&](ExpertKey) {
        return HostExpert{.pieces = {bytes, {}, {}}, .memory = HostMemory::Pinned};
    };
    const auto policies = [](std::int32_t, std::int32_t experts, std::int32_t of_layer) {
        return make_policy(kDefaultPolicy, {.experts = experts, .slots = of_layer});
    };
    ExpertCache cache({&machine.device(0)}, std::vector<LayerShape>(kLayers, {kExperts, kExpertBytes}),
                      source, policies, clock, options);
    Routing routing;
    Times times;
    std::uint64_t sum = 0;
    CacheStatistics before;
    for (std::int64_t token = -tokens / 4; token < tokens; ++token) {
        if (token == 0) {
            times = {};
            before = cache.statistics();
        }
        run_token(cache, routing, times, sum);
        const double start = thread_seconds();
        while (cache.maintain()) clock.advance(std::chrono::microseconds(40));
        times.maintenance.push_back(thread_seconds() - start);
    }
    const CacheStatistics after = cache.statistics();
    const double routed = median_us(times.routed);
    const double end = median_us(times.end);
    const auto hits = static_cast<double>(after.hits - before.hits);
    const auto evictions = static_cast<double>(after.devices[0].evictions - before.devices[0].evictions);
    std::printf("%5d  %5.1f %%  %10.2f  %8.2f  %8.2f  %6.2f  %11.2f%s\n", slots,
                100 * hits / (hits + static_cast<double>(after.misses - before.misses)),
                evictions / static_cast<double>(tokens), routed, end, routed + end,
                median_us(times.maintenance), sum == 0 ? "!" : "");
}

}  // namespace
}  // namespace coterie::expert_cache

int main(int argc, char** argv) {
    const std::int64_t tokens = argc > 1 ? std::atoll(argv[1]) : 4000;
    std::printf("slots   hits    evictions/t  route us    end us  sum us  (uploads us)\n");
    // 8 experts of 2.5 MB are what a link of 24 GB/s moves in 0.8 ms.
    for (const std::uint64_t uploads : {8, 32}) {
        std::printf("at most %d uploads a token\n", static_cast<int>(uploads));
        for (const std::int32_t slots : {16, 32, 64, 96, 128})
            coterie::expert_cache::run(tokens, slots, uploads);
    }
}
