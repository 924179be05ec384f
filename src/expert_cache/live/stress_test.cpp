// Steps, leases, changes of size and the upload thread at once, on a real clock; made for ThreadSanitizer.
// Each reader compares the bytes that it was promised, directly in the fake devices' memory, so that a slot
// that is written while somebody reads it shows up as wrong bytes and as a data race.

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <thread>

#include "base/error.h"
#include "base/split_mix.h"
#include "expert_cache/cache_testing.h"

namespace coterie::expert_cache {
namespace {

using namespace testing_support;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kSeed = 99;
constexpr std::int32_t kPerToken = 4;

class Stress {
  public:
    explicit Stress(std::vector<std::int32_t> host_places) {
        CacheOptions options;
        options.host_places = std::move(host_places);
        options.slots = {{10, 10, 16}, {6, 6, 20}};
        options.poison_freed = true;
        options.patience = milliseconds(30);
        options.uploads.chunk_bytes = 700;
        options.uploads.longest_yield = microseconds(50);
        cache_ = std::make_unique<ExpertCache>(std::vector<Device*>{&machine_.device(0), &machine_.device(1)},
                                               model_.layers(), model_.source(), counting_policies(1), clock_,
                                               options);
    }

    void run(Nanoseconds duration) {
        const Nanoseconds end = clock_.now() + duration;
        std::vector<std::thread> threads;
        for (std::uint64_t t = 0; t < 2; ++t) threads.emplace_back([&, t] { step_until(end, kSeed + t); });
        for (std::uint64_t t = 2; t < 4; ++t) threads.emplace_back([&, t] { lease_until(end, kSeed + t); });
        threads.emplace_back([&] { reshape_until(end, kSeed + 4); });
        for (std::thread& thread : threads) thread.join();
        EXPECT_TRUE(cache_->settle(seconds(20)));
        cache_->check_integrity();
        const CacheStatistics statistics = cache_->statistics();
        EXPECT_EQ(wrong_.load(), 0) << "seed " << kSeed;
        EXPECT_GT(statistics.hits, 0u);
        EXPECT_GT(statistics.devices[0].uploads + statistics.devices[1].uploads, 0u);
        EXPECT_GT(statistics.devices[0].evictions + statistics.devices[1].evictions, 0u);
        EXPECT_GT(leases_.load(), 0);
        EXPECT_GT(fetches_.load(), 0);
        EXPECT_GT(loans_.load(), 0);
    }

  private:
    ExpertKey random_key(SplitMix64& random) const {
        const auto layer = static_cast<std::int32_t>(random.next() % 3);
        const auto experts =
            static_cast<std::uint64_t>(model_.layers()[static_cast<std::size_t>(layer)].experts);
        return {layer, static_cast<std::int32_t>(random.next() % (1 + random.next() % experts))};
    }
    void verify(const ResidentExpert& where, ExpertKey key) {
        if (!model_.matches(machine_.device(where.device), where.address, key)) ++wrong_;
    }

    void step_until(Nanoseconds end, std::uint64_t seed) {
        SplitMix64 random(seed);
        std::vector<std::unique_ptr<FakeStream>> streams;
        for (int d = 0; d < 2; ++d) streams.push_back(machine_.device(d).create_fake_stream());
        while (clock_.now() < end) {
            CacheStep step = cache_->begin_step();
            for (int layer = 0; layer < 3; ++layer) run_layer(step, streams, random);
            for (const auto& stream : streams) stream->synchronise();
        }
    }

    void run_layer(CacheStep& step, std::vector<std::unique_ptr<FakeStream>>& streams, SplitMix64& random) {
        const std::int32_t layer = random_key(random).layer;
        std::int32_t experts[kPerToken];
        for (std::int32_t& e : experts) {
            ExpertKey key{};
            do key = random_key(random);
            while (key.layer != layer);
            e = key.expert;
        }
        step.routed(layer, experts, kPerToken);
        const CpuReading::Scope reading(cache_->cpu_reading());
        for (const std::int32_t e : experts) {
            const ExpertKey key{layer, e};
            if (const auto found = cache_->find(key)) {
                verify(*found, key);
                continue;
            }
            if (const std::byte* place = cache_->in_ram(key)) {
                const auto& expected = model_.bytes(key);
                wrong_ += std::equal(expected.begin(), expected.end(), place) ? 0 : 1;
            }
            const auto device = static_cast<std::int32_t>(random.next() % 2);
            FakeStream& stream = *streams[static_cast<std::size_t>(device)];
            const auto address = step.fetch(key, device, stream);
            if (!address) continue;
            ++fetches_;
            stream.launch([this, device, at = *address, key] { verify({device, at}, key); }, microseconds(3));
        }
    }

    void lease_until(Nanoseconds end, std::uint64_t seed) {
        SplitMix64 random(seed);
        while (clock_.now() < end) {
            const ExpertKey key = random_key(random);
            const auto lease = cache_->acquire(key);
            if (!lease) {
                std::this_thread::yield();
                continue;
            }
            ++leases_;
            for (int i = 0; i < 3; ++i) verify({lease->device(), lease->address()}, key);
        }
    }

    void reshape_until(Nanoseconds end, std::uint64_t seed) {
        SplitMix64 random(seed);
        while (clock_.now() < end) {
            const auto device = static_cast<int>(random.next() % 2);
            if (random.next() % 3 == 0) {
                cache_->resize(device, 40'000 + random.next() % 80'000);
            } else if (const auto loan = cache_->borrow(device, 1 + random.next() % 40'000)) {
                ++loans_;
                std::memset(machine_.device(device).resolve(loan->address(), loan->bytes()), 1,
                            loan->bytes());
            }
            static_cast<void>(cache_->statistics());
            clock_.wait_until(clock_.now() + milliseconds(1));
        }
    }

    SteadyClock clock_;
    FakeMachine machine_{clock_, {small_device(1 << 20, 2e9), small_device(1 << 20, 1e9)}, 2e9};
    HostModel model_{{{16, 5000}, {16, 3100}, {40, 1300}}, HostMemory::Pageable, kSeed};
    std::unique_ptr<ExpertCache> cache_;
    std::atomic<int> wrong_{0};
    std::atomic<int> leases_{0};
    std::atomic<int> fetches_{0};
    std::atomic<int> loans_{0};
};

TEST(Stress, AllAtOnceForTwoSeconds) { Stress({}).run(seconds(2)); }

TEST(Stress, TheSameWithExclusiveResidency) { Stress({6, 4, 10}).run(seconds(2)); }

// --gtest_also_run_disabled_tests --gtest_filter='*Stress60*'
TEST(Stress60, DISABLED_AllAtOnceForAMinute) { Stress({}).run(seconds(60)); }
TEST(Stress60, DISABLED_TheSameWithExclusiveResidency) { Stress({6, 4, 10}).run(seconds(60)); }

}  // namespace
}  // namespace coterie::expert_cache
