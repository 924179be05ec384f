#include "engine/offload.h"

#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "base/split_mix.h"
#include "engine/engine.h"

// What an engine with devices does beside computing: it measures, tries again, shares out anew, cuts prompts.

namespace coterie::engine {
namespace {

constexpr const char* kModel = COTERIE_SOURCE_DIR "/models/demo-dictionary-29m-q5_k_s.gguf";
constexpr std::uint64_t kSeed = 20261130;

class OffloadTest : public testing::Test {
  protected:
    OffloadTest() {
        options.threads = 1;
        options.context = 2048;
        options.batch = 64;
        options.offload.fake_devices = {{.memory_bytes = std::uint64_t{1} << 28, .memory_rate = 1e12}};
        options.offload.clock = &clock;
        options.offload.slots_per_layer = 24;
        options.offload.cache.maintenance = expert_cache::Maintenance::Manual;
        options.offload.measures_costs = false;
        options.offload.ram_rate = 1e6;  // slow beside the device, so that whatever can goes there
    }

    void make() {
        engine =
            std::make_unique<Engine>(std::make_shared<gguf::Archive>(gguf::Archive::open(kModel)), options);
        sequence.emplace(engine->make_sequence());
    }
    std::vector<TokenId> draw(std::int64_t count) {
        std::vector<TokenId> tokens;
        const auto vocabulary = static_cast<std::uint64_t>(engine->config().vocabulary);
        while (static_cast<std::int64_t>(tokens.size()) < count)
            tokens.push_back(static_cast<TokenId>(random.next() % vocabulary));
        return tokens;
    }
    void decode(int tokens) {
        for (; tokens > 0; --tokens) {
            const std::vector<TokenId> token = draw(1);
            const Slice slice{&*sequence, token, Slice::Logits::Last};
            engine->step({&slice, 1}, [](std::int64_t, std::span<const float>) {});
            engine->offload()->cache().settle(std::chrono::seconds(1));
        }
    }
    std::vector<std::int64_t> step_sizes(std::int64_t prompt) {
        Sequence fresh = engine->make_sequence();
        std::vector<std::int64_t> sizes;
        std::int64_t before = 0;
        engine->extend(fresh, draw(prompt), nullptr, [&](std::int64_t, std::int64_t done, std::int64_t) {
            if (done > before) sizes.push_back(done - before);
            before = done;
        });
        return sizes;
    }
    std::uint64_t on_devices() {
        const HybridStatistics& did = engine->offload()->experts().statistics();
        return did.in_place.experts + did.fetched.experts + did.streamed.experts;
    }
    FakeDevice& device() { return engine->offload()->machine().device(0); }

    SimulatedClock clock;
    SplitMix64 random{kSeed};
    EngineOptions options;
    std::unique_ptr<Engine> engine;
    std::optional<Sequence> sequence;
};

TEST_F(OffloadTest, MeasuredStepsCorrectTheCosts) {
    options.offload.fake_devices[0].link_rate = 1e7;
    options.offload.ram_rate = 0;
    make();
    expert_cache::Costs wrong = engine->offload()->experts().costs();
    wrong.cpu.read_bytes_per_second = 1e14;  // so that it gets all the work
    wrong.cpu.compute[0].row_seconds = 1e-12;
    wrong.devices[0].link_bytes_per_second = 1e8;
    options.offload.costs = wrong;
    options.offload.measures_costs = true;
    make();
    decode(100);
    const expert_cache::Costs& costs = engine->offload()->experts().costs();
    EXPECT_LT(costs.cpu.read_bytes_per_second, 1e13);
    EXPECT_NEAR(costs.devices[0].link_bytes_per_second, 1e7, 1e6);  // by the device's own clock
}

TEST_F(OffloadTest, GivenCostsStayWhereNothingIsMeasured) {
    make();
    const expert_cache::Costs before = engine->offload()->experts().costs();
    decode(20);
    step_sizes(100);
    const expert_cache::Costs& after = engine->offload()->experts().costs();
    EXPECT_EQ(after.cpu.read_bytes_per_second, before.cpu.read_bytes_per_second);
    EXPECT_EQ(after.devices[0].link_bytes_per_second, before.devices[0].link_bytes_per_second);
    EXPECT_EQ(after.devices[0].memory_bytes_per_second, before.devices[0].memory_bytes_per_second);
}

TEST_F(OffloadTest, OneRefusedCallOnlyCostsAFewSteps) {
    make();
    decode(20);
    for (int call = 1; call < 30; ++call) {
        device().refuse_call(call);
        decode(8);
        device().refuse_call(0);
        decode(2);
        const std::uint64_t before = on_devices();
        decode(2);
        EXPECT_GT(on_devices(), before) << "refused call " << call;
    }
}

/// Passes the time of attention on the devices' clock, and sums up what layers take behind their routing.
class TimedLayers : public StepObserver {
  public:
    TimedLayers(SimulatedClock& clock, Nanoseconds attention) : clock_(clock), attention_(attention) {}
    void routed(int, std::int64_t, std::span<const std::int32_t>, std::span<const float>) override {
        routed_ = clock_.now();
    }
    void layer_done(int layer, const float*, std::int64_t, std::int64_t) override {
        if (layer > 0) experts += clock_.now() - routed_;  // the first has none
        clock_.advance(attention_);
    }

    Nanoseconds experts{0};

  private:
    SimulatedClock& clock_;
    Nanoseconds attention_;
    Nanoseconds routed_{0};
};

TEST_F(OffloadTest, APromptsCopiesRunThroughAttention) {
    constexpr double kLinkRate = 1e7;  // 3.5 ms an expert
    options.offload.fake_devices[0].link_rate = kLinkRate;
    make();
    const std::vector<TokenId> prompt = draw(60);
    const auto& streamed = engine->offload()->experts().statistics();
    const auto run = [&](Nanoseconds attention) {
        Sequence fresh = engine->make_sequence();
        TimedLayers layers(clock, attention);
        engine->extend(fresh, prompt, &layers, [](std::int64_t, std::int64_t, std::int64_t) {});
        return layers.experts;
    };
    run(Nanoseconds(0));  // by which the next ones guess
    const Nanoseconds without = run(Nanoseconds(0));
    const HybridStatistics::Path before = streamed.ran_ahead;
    const Nanoseconds with = run(std::chrono::seconds(1));
    const double saved = static_cast<double>(streamed.ran_ahead.bytes - before.bytes) / kLinkRate;
    EXPECT_GE(streamed.ran_ahead.experts - before.experts, 6u * 8);  // layers, and buffers of a ring
    EXPECT_GE(std::chrono::duration<double>(without - with).count(), 0.95 * saved);
    EXPECT_GT(with.count(), 0) << "the rest streams beside the products";
}

TEST_F(OffloadTest, ARefusedLoanIsAskedForAgain) {
    options.offload.slots_per_layer = 60;
    make();
    decode(20);
    device().refuse_allocation(1);
    step_sizes(300);
    const std::uint64_t before = engine->offload()->experts().statistics().streamed.experts;
    step_sizes(300);
    EXPECT_GT(engine->offload()->experts().statistics().streamed.experts, before);
    engine->request_ended();
    for (std::int32_t layer = 1; layer < 7; ++layer)
        EXPECT_EQ(engine->offload()->cache().slots(0, layer), 60);
}

TEST_F(OffloadTest, ALostDeviceStaysOut) {
    make();
    decode(20);
    device().lose();
    decode(3);
    const std::uint64_t before = on_devices();
    decode(40);
    EXPECT_EQ(on_devices(), before);
}

TEST_F(OffloadTest, BetweenRequestsSlotsFollowTheUse) {
    options.offload.rebalance_tokens = 16;
    make();
    const auto experts = static_cast<std::int32_t>(engine->config().experts);
    const expert_cache::ProfileShape shape{.model_hash = 1, .layers = 7, .experts = experts};
    options.offload.profile.emplace(shape);
    for (std::int32_t layer = 1; layer < 7; ++layer) {
        // The first layers are said to use few experts all the time.
        const std::int32_t used = layer < 4 ? 4 : experts;
        for (std::int32_t e = 0; e < used; ++e) options.offload.profile->set({layer, e}, 1e9 / used);
    }
    make();
    decode(10);
    engine->request_ended();
    EXPECT_EQ(engine->offload()->cache().slots(0, 1), 24) << "too few tokens to decide";
    decode(10);
    engine->request_ended();
    const expert_cache::ExpertCache& cache = engine->offload()->cache();
    EXPECT_LT(cache.slots(0, 1), 24);
    EXPECT_GT(cache.slots(0, 6), 24);
    cache.check_integrity();
    decode(10);
}

TEST_F(OffloadTest, WithExclusiveResidencyEachExpertIsInOnePlace) {
    options.offload.slots_per_layer = 0;
    options.offload.cache.slots = {{0, 24, 24, 24, 24, 24, 24}};
    options.offload.exclusive_ram_bytes = std::uint64_t{1} << 30;
    make();
    const auto only_in_file = [&] {
        const expert_cache::ExpertCache& cache = engine->offload()->cache();
        int count = 0;
        for (std::int32_t layer = 1; layer < 7; ++layer) {
            for (std::int32_t e = 0; e < 64; ++e) {
                const bool on_device = cache.find({layer, e}).has_value();
                const bool in_ram = cache.in_ram({layer, e}) != nullptr;
                EXPECT_FALSE(on_device && in_ram);
                count += !on_device && !in_ram ? 1 : 0;
            }
        }
        return count;
    };
    EXPECT_EQ(only_in_file(), 0);
    decode(60);
    EXPECT_EQ(only_in_file(), 0);
    EXPECT_GT(engine->offload()->cache().statistics().devices[0].returned, 0u);
    engine->offload()->cache().check_integrity();
}

TEST_F(OffloadTest, SlotsAreFilledAtStartWhereNothingElseWould) {
    options.offload.fills_slots = true;
    options.offload.learning = expert_cache::Learning::Off;
    options.offload.slots_per_layer = 64;
    make();
    EXPECT_EQ(engine->offload()->cache().statistics().devices[0].resident, 6u * 64);
}

TEST_F(OffloadTest, PrefetchIsTriedWithAndWithout) {
    options.offload.prefetch = expert_cache::Prefetch::Both;
    options.offload.measures_costs = true;
    make();
    decode(4 * expert_cache::PrefetchJudge::kBlockSteps);
    const expert_cache::PrefetchJudge& judge = engine->offload()->experts().prefetch_judge();
    EXPECT_GT(judge.seconds_with(), 0);
    EXPECT_GT(judge.seconds_without(), 0);
    EXPECT_EQ(judge.share_on(), 0.5);
}

TEST_F(OffloadTest, LongPromptsGoInFixedWindows) {
    options.window = 500;
    options.offload.windows = OffloadOptions::Windows::Fixed;
    make();
    EXPECT_EQ(engine->window(), 500);
    EXPECT_EQ(step_sizes(1200), (std::vector<std::int64_t>{500, 500, 200}));
    EXPECT_EQ(step_sizes(40), std::vector<std::int64_t>{40});
}

TEST_F(OffloadTest, PlannedWindowsGrowWithWhatHasToStream) {
    options.window = 1024;
    options.offload.slots_per_layer = 60;
    options.offload.ram_rate = 0;
    make();
    const std::vector<std::int64_t> instant = step_sizes(1200);  // the link takes no time
    EXPECT_LT(instant.front(), 200);
    options.offload.fake_devices[0].link_rate = 1e5;
    make();
    const std::vector<std::int64_t> slow = step_sizes(1200);
    EXPECT_GT(slow.front(), 256);
    EXPECT_LE(slow.front(), 1024);
}

TEST_F(OffloadTest, WindowsAreForDevices) {
    options.window = 500;
    options.offload.fake_devices.clear();
    make();
    EXPECT_EQ(engine->window(), 64);
    EXPECT_EQ(step_sizes(130), (std::vector<std::int64_t>{64, 64, 2}));
}

}  // namespace
}  // namespace coterie::engine
