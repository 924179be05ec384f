#include "expert_cache/replay/replay.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "expert_cache/policy/layer_for_test.h"
#include "expert_cache/policy/registry.h"
#include "expert_cache/replay/time_model.h"
#include "expert_cache/trace/traces_for_test.h"

namespace coterie::expert_cache {
namespace {

constexpr std::uint64_t kSeed = 20240731;
/// Copies take no time and no rate from the CPU.
constexpr ReplayCosts kInstant{
    .link_rate = 1e30, .ram_rate = 1e30, .vram_rate = 1e9, .handoff = 1e-6, .upload_share = 1e30};

/// A trace in memory and its tokens.
struct Recording {
    Recording(const TraceHeader& header, std::vector<testing::Token> recorded)
        : tokens(std::move(recorded)), bytes(testing::whole_trace(header, tokens)), trace(bytes, "trace") {}

    std::vector<testing::Token> tokens;
    std::vector<std::byte> bytes;
    TraceReader trace;
    ReplayTokens replay_tokens{trace, PromptTokens::Skip};
};

std::unique_ptr<Recording> random_recording(std::int32_t layers, std::int32_t experts, std::int32_t used) {
    const TraceHeader header = testing::trace_header(layers, experts, used);
    std::vector<testing::RandomRouting> routing;
    for (std::int32_t layer = 0; layer < layers; ++layer) {
        routing.emplace_back(kSeed + static_cast<std::uint64_t>(layer), experts, used);
    }
    std::vector<testing::Token> tokens(500);
    for (testing::Token& token : tokens) {
        for (testing::RandomRouting& layer : routing) {
            for (const std::int32_t expert : layer.next()) token.push_back(expert);
        }
    }
    return std::make_unique<Recording>(header, std::move(tokens));
}

/// Hits of a policy alone on one layer, where what a token's misses bring in is there for the next token.
std::int64_t hits_of(Policy& policy, const std::vector<testing::Token>& tokens, std::size_t slots) {
    struct Swap {
        std::int32_t in;
        std::int32_t out;  ///< or -1
    };
    std::set<std::int32_t> residents;
    std::int64_t hits = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const auto token = static_cast<std::int64_t>(i);
        for (const std::int32_t expert : tokens[i]) {
            hits += residents.contains(expert);
            policy.used(expert, token, residents.contains(expert));
        }
        std::vector<std::int32_t> candidates(residents.begin(), residents.end());
        std::vector<Swap> swaps;
        for (const std::int32_t expert : tokens[i]) {
            if (residents.contains(expert) || !policy.admits(expert, token)) continue;
            const bool full = candidates.size() + swaps.size() >= slots;
            if (full && candidates.empty()) continue;
            const std::int32_t victim = full ? policy.victim(candidates, expert, token) : -1;
            if (full && victim < 0) continue;
            std::erase(candidates, victim);
            swaps.push_back({expert, victim});
        }
        for (const Swap& swap : swaps) {
            if (swap.out >= 0) policy.removed(swap.out, token);
            residents.erase(swap.out);
            residents.insert(swap.in);
            policy.inserted(swap.in, token);
        }
    }
    return hits;
}

TEST(ReplayTest, HitsAreThePolicysWhereCopiesTakeNoTime) {
    const auto recording = random_recording(3, 40, 4);
    Replay replay(recording->replay_tokens);
    for (const PolicyKind& kind : policy_kinds()) {
        if (kind.needs != PolicyNeeds::Nothing) continue;  // begins full
        const ReplayResult result = replay.run(kind.name, 10, kInstant);
        std::int64_t hits = 0;
        for (std::ptrdiff_t layer = 0; layer < 3; ++layer) {
            std::vector<testing::Token> tokens;
            for (const testing::Token& token : recording->tokens) {
                tokens.emplace_back(token.begin() + 4 * layer, token.begin() + 4 * (layer + 1));
            }
            hits += hits_of(*make_policy(kind.name, {.experts = 40, .slots = 10}), tokens, 10);
        }
        EXPECT_EQ(result.hits, hits) << kind.name;
        EXPECT_EQ(result.uses, 3 * 4 * 500) << kind.name;
        EXPECT_EQ(result.tokens, 500) << kind.name;
    }
}

TEST(ReplayTest, NoPolicyHasMoreHitsThanBelady) {
    const auto recording = random_recording(3, 40, 4);
    Replay replay(recording->replay_tokens);
    for (const std::int32_t slots : {0, 1, 4, 10, 30, 40}) {
        const std::int64_t most = replay.run("belady", slots, {}).hits;
        for (const PolicyKind& kind : policy_kinds()) {
            EXPECT_LE(replay.run(kind.name, slots, {}).hits, most) << kind.name << ", " << slots << " slots";
            EXPECT_LE(replay.run(kind.name, slots, kInstant).hits, most)
                << kind.name << ", " << slots << " slots, copies that take no time";
        }
    }
}

TEST(ReplayTest, TimesAreTheMachines) {
    const auto recording = random_recording(2, 40, 4);
    const double bytes = 4.0 * (1000.0 + 1001.0);  // of a token, from traces_for_test.h
    const ReplayCosts costs{.link_rate = 1e6, .ram_rate = 1e7, .vram_rate = 1e9, .handoff = 1e-3};
    Replay replay(recording->replay_tokens);
    const ReplayResult resident = replay.run("static", 40, costs);
    EXPECT_EQ(resident.hit_rate(), 1.0);
    EXPECT_NEAR(resident.per_token(resident.seconds), bytes / 1e9, 1e-12);
    const ReplayResult missed = replay.run("lru", 0, costs);
    EXPECT_EQ(missed.hits, 0);
    EXPECT_EQ(missed.uploads, 0);
    EXPECT_NEAR(missed.per_token(missed.seconds), 2e-3 + bytes / 1e7, 1e-9);
}

TEST(ReplayTest, UploadsKeepToTheirShareOfTheLink) {
    const auto recording = random_recording(4, 40, 4);
    const ReplayCosts costs{.link_rate = 1e7, .ram_rate = 1e8, .vram_rate = 1e9, .handoff = 0.0};
    const ReplayResult result = Replay(recording->replay_tokens).run("lru", 4, costs);
    const double busy = result.upload_bytes / costs.link_rate;
    const double one_upload_a_token = 500 * 1003.0 / costs.link_rate;
    EXPECT_GT(result.uploads, 0);
    EXPECT_LE(busy, costs.upload_share * result.seconds + one_upload_a_token);

    ReplayCosts slow = costs;
    slow.link_rate = 1.0;  // the first upload never lands
    EXPECT_EQ(Replay(recording->replay_tokens).run("lru", 4, slow).uploads, 1);
    ReplayCosts none = costs;
    none.upload_share = 0.0;
    EXPECT_EQ(Replay(recording->replay_tokens).run("lru", 4, none).uploads, 0);
}

TEST(ReplayTest, LeavesPromptsOutUnlessAsked) {
    const TraceHeader header = testing::trace_header(1, 4, 2);
    std::vector<std::byte> bytes = trace_format::encode_header(header);
    std::vector<std::byte> record(trace_format::record_bytes(header));
    const std::uint32_t steps[] = {0, 0, 0, 1, 2, 3, 3};
    for (std::size_t i = 0; i < std::size(steps); ++i) {
        trace_format::encode_record(header, i, steps[i], testing::Token{static_cast<int>(i % 4), -1},
                                    record.data());
        testing::append(bytes, record);
    }
    testing::append(bytes, trace_format::encode_trailer(std::size(steps)));
    const TraceReader trace(bytes, "trace");
    const ReplayTokens answers(trace, PromptTokens::Skip);
    ASSERT_EQ(answers.size(), 2);
    testing::Token token = answers.buffer();
    answers.read(0, token);
    EXPECT_EQ(token, (testing::Token{3, -1}));
    EXPECT_EQ(answers.uses(0)[3], 1.0f);
    EXPECT_EQ(answers.uses(0)[1], 0.0f);
    EXPECT_EQ(ReplayTokens(trace, PromptTokens::Include).size(), 7);
}

TEST(ReplayTest, SlotsAreRoundedAndNeverNone) {
    EXPECT_EQ(slots_of(5, 8), 1);
    EXPECT_EQ(slots_of(25, 128), 32);
    EXPECT_EQ(slots_of(15, 128), 19);
    EXPECT_EQ(slots_of(100, 60), 60);
}

TEST(TimeModelTest, TheLaterSideEndsALayer) {
    TimeModel time({.link_rate = 1.0, .ram_rate = 10.0, .vram_rate = 100.0, .handoff = 0.5});
    time.run_layer(200.0, 0.0);
    EXPECT_DOUBLE_EQ(time.now(), 2.0);
    time.run_layer(100.0, 20.0);  // device 1 s, CPU 0.5 + 2 s
    EXPECT_DOUBLE_EQ(time.now(), 4.5);
}

TEST(TimeModelTest, AnUploadTakesItsRateFromTheCpu) {
    TimeModel time({.link_rate = 4.0, .ram_rate = 10.0, .vram_rate = 100.0, .handoff = 0.0});
    EXPECT_DOUBLE_EQ(time.start_upload(8.0), 2.0);
    time.run_layer(0.0, 6.0);  // at 6 a second
    EXPECT_DOUBLE_EQ(time.now(), 1.0);
    time.run_layer(0.0, 26.0);  // one second more of that, then 20 at 10 a second
    EXPECT_DOUBLE_EQ(time.now(), 4.0);
}

TEST(TimeModelTest, UploadsQueueUpToTheBudgetOfTheLastToken) {
    TimeModel time(
        {.link_rate = 1.0, .ram_rate = 10.0, .vram_rate = 100.0, .handoff = 0.0, .upload_share = 0.5});
    time.run_layer(0.0, 100.0);  // 10 s
    time.end_token();
    EXPECT_TRUE(time.may_upload(3.0));
    EXPECT_DOUBLE_EQ(time.start_upload(3.0), 13.0);
    EXPECT_TRUE(time.may_upload(2.0));
    EXPECT_FALSE(time.may_upload(2.1));
    EXPECT_DOUBLE_EQ(time.start_upload(2.0), 15.0);
    EXPECT_FALSE(time.may_upload(0.1));
}

TEST(TimeModelTest, ALinkFasterThanRamLeavesTheCpuATenth) {
    TimeModel time({.link_rate = 1e9, .ram_rate = 10.0, .vram_rate = 100.0, .handoff = 0.0});
    EXPECT_DOUBLE_EQ(time.start_upload(90.0), 10.0);
    time.run_layer(0.0, 5.0);
    EXPECT_DOUBLE_EQ(time.now(), 5.0);
}

}  // namespace
}  // namespace coterie::expert_cache
