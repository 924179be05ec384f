#include <algorithm>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "base/split_mix.h"
#include "engine/engine.h"
#include "engine/offload.h"
#include "test_models.h"

// Where experts are computed changes no bit of any logit: on one to four uneven fake devices, at any
// residency, with any policy, budget, link and fault.

namespace coterie::engine {
namespace {

constexpr std::int64_t kTokens = 130;

struct Round {
    int resident_percent;
    bool devices_pay;  ///< fast devices beside slow RAM: the planner takes them
};
constexpr Round kRounds[] = {{0, false}, {5, false}, {25, false}, {50, true}, {100, false}, {100, true}};

EngineOptions base_options(const TestModel& model) {
    EngineOptions options;
    options.cache = model.cache;
    options.threads = 2;
    options.context = 2048;
    options.batch = 128;
    return options;
}

std::unique_ptr<Engine> open(const TestModel& model, const EngineOptions& options) {
    return std::make_unique<Engine>(std::make_shared<gguf::Archive>(gguf::Archive::open(model.path)),
                                    options);
}

/// What one round draws; printed where it fails.
struct Setting {
    OffloadOptions offload;
    std::string text;
};

class PlacementTest : public testing::TestWithParam<TestModel> {
  protected:
    void SetUp() override {
        auto engine = open(GetParam(), base_options(GetParam()));
        for (std::int64_t i = 0; i < kTokens; ++i) {
            tokens_.push_back(static_cast<TokenId>(random_.next() %
                                                   static_cast<std::uint64_t>(engine->config().vocabulary)));
        }
        const ExpertCatalog catalog(engine->model());
        for (const auto& shape : catalog.shapes()) has_experts_.push_back(shape.experts > 0);
        experts_ = static_cast<std::int32_t>(engine->config().experts);
        Sequence sequence = engine->make_sequence();
        expected_ = append(*engine, sequence, std::span(tokens_).first(128));
        const Rows rest = append(*engine, sequence, std::span(tokens_).subspan(128));
        expected_.insert(expected_.end(), rest.begin(), rest.end());
    }

    std::uint64_t draw(std::uint64_t below) { return random_.next() % below; }
    template <typename T>
    T pick(std::initializer_list<T> values) {
        return *(values.begin() + draw(values.size()));
    }

    expert_cache::RoutingProfile draw_profile() {
        const auto layers = static_cast<std::int32_t>(has_experts_.size());
        expert_cache::RoutingProfile profile({.model_hash = 1, .layers = layers, .experts = experts_});
        for (std::int32_t layer = 0; layer < layers; ++layer) {
            for (std::int32_t e = 0; e < experts_; ++e) {
                profile.set({layer, e}, static_cast<double>(draw(1000)));
            }
        }
        return profile;
    }

    Setting draw_setting(const Round& round) {
        Setting setting;
        OffloadOptions& offload = setting.offload;
        const std::size_t devices = 1 + draw(4);
        const std::int32_t total = experts_ * round.resident_percent / 100;
        for (std::size_t d = 0; d < devices; ++d) {
            offload.fake_devices.push_back(
                {.memory_bytes = std::uint64_t{1} << 30,
                 .link_rate = round.devices_pay ? 0.0 : pick({1e6, 1e8, 1e10, 0.0}),
                 .latency = Nanoseconds(round.devices_pay ? 0 : draw(100000)),
                 .memory_rate = round.devices_pay ? 1e11 : pick({1e9, 1e11})});
            // Uneven: each device gets a part of what is left.
            const std::int32_t part =
                d + 1 == devices ? total
                                 : static_cast<std::int32_t>(draw(static_cast<std::uint64_t>(total) + 1));
            std::vector<std::int32_t>& slots = offload.cache.slots.emplace_back();
            for (const bool has : has_experts_) slots.push_back(has ? part : 0);
        }
        offload.ram_rate = round.devices_pay ? 1e8 : pick({0.0, 1e8, 2e10});
        offload.clock = &clock_;
        offload.policy = pick<std::string>({"admit", "arc", "lfu", "lru", "slru", "static"});
        if (offload.policy == "static" || draw(4) == 0) offload.profile = draw_profile();
        offload.measures_costs = !round.devices_pay && draw(2) == 0;
        offload.windows = pick({OffloadOptions::Windows::Planned, OffloadOptions::Windows::Fixed});
        offload.rebalance_tokens = 16;
        if (draw(3) == 0) offload.exclusive_ram_bytes = draw(std::uint64_t{8} << 20);
        offload.fills_slots = draw(2) == 0;
        using expert_cache::Prefetch;
        offload.prefetch = pick({Prefetch::Off, Prefetch::Router, Prefetch::Temporal, Prefetch::Both});
        offload.cache.uploads.bytes_per_token =
            pick({expert_cache::UploadOptions::kNoBudget, std::uint64_t{100000}});
        offload.cache.uploads.chunk_bytes = pick({std::uint64_t{4096}, std::uint64_t{1} << 20});
        // By hand where the round must show devices at work, so that no thread's timing decides.
        using expert_cache::Maintenance;
        offload.cache.maintenance =
            round.devices_pay || draw(2) == 0 ? Maintenance::Manual : Maintenance::Thread;
        offload.cache.poison_freed = true;
        setting.text =
            fmt::format("COTERIE_TEST_SEED={} devices={} percent={} policy={} prefetch={}", seed(), devices,
                        round.resident_percent, offload.policy, static_cast<int>(offload.prefetch));
        return setting;
    }

    /// Perhaps: one of the things that happen to devices.
    void disturb(Engine& engine) {
        FakeMachine& machine = engine.offload()->machine();
        FakeDevice& device =
            machine.device(static_cast<int>(draw(static_cast<std::uint64_t>(machine.size()))));
        if (device.lost()) return;
        switch (draw(14)) {
            case 5:
                return device.refuse_call(1 + static_cast<int>(draw(20)));
            case 6:
                return device.refuse_allocation(1 + static_cast<int>(draw(2)));
            case 0:
                return device.fail_copy(1 + static_cast<int>(draw(4)));
            case 1:
                return device.refuse_copy(1 + static_cast<int>(draw(4)));
            case 2:
                return device.slow_copies(20);
            case 3:
                return device.slow_copies(1);
            case 4:
                if (draw(4) == 0) device.lose_at_copy(1 + static_cast<int>(draw(4)));
                return;
            default:
                return;
        }
    }

    void expect_same(Engine& engine, bool faults) {
        Sequence sequence = engine.make_sequence();
        for (std::int64_t begin = 0; begin < kTokens;) {
            const auto most = static_cast<std::int64_t>(pick({1, 1, 1, 2, 7, 32, 60, 130}));
            const std::int64_t end = std::min(kTokens, begin + most);
            const auto part = std::span<const TokenId>(tokens_).subspan(
                static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
            if (faults) disturb(engine);
            const Rows rows = append(engine, sequence, part);
            for (std::size_t i = 0; i < rows.size(); ++i) {
                ASSERT_EQ(rows[i], expected_[static_cast<std::size_t>(begin) + i])
                    << "position " << begin + static_cast<std::int64_t>(i);
            }
            begin = end;
            if (draw(6) == 0) engine.request_ended();
            for (std::uint64_t k = draw(8); k > 0; --k) engine.offload()->cache().maintain();
        }
    }

    void run_rounds(bool faults) {
        for (const Round& round : kRounds) {
            Setting setting = draw_setting(round);
            SCOPED_TRACE(setting.text);
            EngineOptions options = base_options(GetParam());
            options.offload = setting.offload;
            options.window = 160;
            auto engine = open(GetParam(), options);
            expect_same(*engine, faults);
            if (HasFatalFailure()) return;
            engine->offload()->cache().check_integrity();
            const HybridStatistics& did = engine->offload()->experts().statistics();
            in_place_ += did.in_place.experts;
            on_devices_ += did.in_place.experts + did.fetched.experts + did.streamed.experts;
        }
    }

    SimulatedClock clock_;
    SplitMix64 random_{seed()};
    std::vector<TokenId> tokens_;
    std::vector<bool> has_experts_;  ///< [layers]
    std::int32_t experts_ = 0;
    Rows expected_;
    std::uint64_t in_place_ = 0;
    std::uint64_t on_devices_ = 0;
};

TEST_P(PlacementTest, NeverChangesALogit) {
    run_rounds(false);
    // A test in which no device did anything would prove nothing.
    EXPECT_GT(in_place_, 0u);
    EXPECT_GT(on_devices_, in_place_);
}

TEST_P(PlacementTest, NorDoFaults) { run_rounds(true); }

INSTANTIATE_TEST_SUITE_P(Models, PlacementTest, testing::ValuesIn(test_models()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace coterie::engine
