// Answers with drafts are those without, whatever runs beside them and however little room there is.

#include <gtest/gtest.h>

#include "scheduler/run/runner.h"
#include "scheduler/scheduler_testing.h"

namespace coterie::scheduler {
namespace {

constexpr std::int64_t kAnswer = 60;

SchedulerOptions drafting(int slots, std::int64_t most = 6) {
    SchedulerOptions options;
    options.slots = slots;
    options.drafts = {.source = speculative::DraftSource::Ngram, .most_tokens = most, .ngram = 1};
    return options;
}

/// Texts that repeat themselves, which small models go on doing.
std::vector<std::vector<TokenId>> repeating_prompts(int count) {
    std::vector<std::vector<TokenId>> prompts;
    for (int i = 0; i < count; ++i) {
        const std::vector<TokenId> part = random_tokens(7 + 9 * i, 200 + i);
        std::vector<TokenId> prompt;
        for (int j = 0; j < 3; ++j) prompt.insert(prompt.end(), part.begin(), part.end());
        prompts.push_back(prompt);
    }
    return prompts;
}

using Answered = std::vector<std::vector<TokenId>>;

Answered ids(const RunnerFixture& fixture) {
    Answered answered;
    for (const TestAnswer& answer : fixture.answers()) answered.push_back(answer.ids);
    return answered;
}

TEST(Drafts, ChangeNoAnswer) {
    for (const std::string& model : kTestModels) {
        SCOPED_TRACE(model);
        const auto prompts = repeating_prompts(5);
        RunnerFixture plain(model, {.slots = 2}, {.context = 1024, .batch = 64});
        plain.admit_all(prompts, kAnswer);
        for (const std::int64_t batch : {64, 16, 3}) {
            RunnerFixture fixture(model, drafting(3), {.context = 1024, .batch = batch});
            fixture.admit_all(prompts, kAnswer);
            EXPECT_EQ(ids(fixture), ids(plain)) << "batch " << batch;
            EXPECT_EQ(fixture.counters().generated_tokens.load(), prompts.size() * kAnswer);
            EXPECT_GT(fixture.counters().drafted_tokens.load(), 0u);
        }
    }
}

/// Five tokens below 256 over and over, but for every seventh one, which the model chooses among a few.
class Refrain final : public TokenConstraint {
  public:
    std::span<const std::uint64_t> allowed() override {
        mask_.assign(512 / 64, 0);
        const std::size_t choices = count_ % 7 == 3 ? 3 : 1;
        for (std::size_t i = 0; i < choices; ++i) mask_[i] = std::uint64_t{1} << (3 * (count_ % 5));
        return mask_;
    }
    void accept(TokenId) override { ++count_; }

  private:
    std::vector<std::uint64_t> mask_;
    std::size_t count_ = 0;
};

TEST(Drafts, ChangeNoAnswerThatIsHeldToAGrammar) {
    for (const std::string& model : kTestModels) {
        SCOPED_TRACE(model);
        const auto run = [&](const SchedulerOptions& options) {
            RunnerFixture fixture(model, options, {.context = 1024, .batch = 64});
            for (std::vector<TokenId> prompt : repeating_prompts(3)) {
                for (TokenId& token : prompt) token = 256 + token % 200;  // the first draft is of the refrain
                fixture.admit(prompt, kAnswer, {}, RunnerFixture::greedy(), std::make_unique<Refrain>());
            }
            fixture.run();
            EXPECT_EQ(fixture.counters().accepted_tokens.load() > 0,
                      options.drafts.source != speculative::DraftSource::None);
            return ids(fixture);
        };
        EXPECT_EQ(run(drafting(3)), run({.slots = 3}));
    }
}

TEST(Drafts, ChangeNoAnswerThatIsDrawnByChance) {
    for (const std::string& model : kTestModels) {
        SCOPED_TRACE(model);
        const auto prompts = repeating_prompts(3);
        const auto run = [&](const SchedulerOptions& options) {
            RunnerFixture fixture(model, options, {.context = 1024, .batch = 64});
            SamplingOptions sampling;
            sampling.temperature = 0.3f;
            for (const auto& prompt : prompts) {
                sampling.seed = static_cast<std::uint32_t>(prompt.size());
                fixture.admit(prompt, kAnswer, {}, sampling);
            }
            fixture.run();
            EXPECT_EQ(fixture.counters().drafted_tokens.load() > 0,
                      options.drafts.source != speculative::DraftSource::None);
            return ids(fixture);
        };
        EXPECT_EQ(run(drafting(3)), run({.slots = 3}));
    }
}

TEST(Drafts, GiveWayWherePagesAreShort) {
    for (const std::string& model : kTestModels) {
        SCOPED_TRACE(model);
        const auto prompts = repeating_prompts(4);
        RunnerFixture plain(model, {.slots = 1}, {.context = 512, .batch = 64});
        plain.admit_all(prompts, 300);
        RunnerFixture fixture(model, drafting(4), {.context = 512, .batch = 64});
        fixture.admit_all(prompts, 300);
        EXPECT_EQ(ids(fixture), ids(plain));
        EXPECT_GT(fixture.counters().suspended.load(), 0u);
    }
}

TEST(Drafts, EndAtTheContextsLastTokenAndNotBefore) {
    for (const std::string& model : kTestModels) {
        SCOPED_TRACE(model);
        const auto prompt = repeating_prompts(1).front();
        RunnerFixture fixture(model, drafting(1, 48), {.context = 128, .batch = 64});
        fixture.admit(prompt, -1);
        fixture.run();
        EXPECT_EQ(fixture.answers().at(0).ids.size(), 128 - prompt.size());
        EXPECT_EQ(fixture.answers().at(0).finished.reason, FinishReason::Length);
    }
}

TEST(Drafts, LeaveNothingOfThemselvesInWhatIsKept) {
    for (const std::string& model : kTestModels) {
        SCOPED_TRACE(model);
        const auto run = [&](const SchedulerOptions& options) {
            RunnerFixture fixture(model, options, {.context = 1024, .batch = 64});
            std::vector<TokenId> turn = repeating_prompts(2).back();
            for (std::size_t i = 0; i < 3; ++i) {
                fixture.admit(turn, 20 + static_cast<std::int64_t>(i));
                fixture.run();
                const std::vector<TokenId>& answer = fixture.answers().at(i).ids;
                turn.insert(turn.end(), answer.begin(), answer.end());
                turn.push_back(static_cast<TokenId>(i));
                const Usage& usage = fixture.answers().at(i).finished.usage;
                EXPECT_EQ(usage.cached_tokens > 0, i > 0);
                EXPECT_LE(usage.accepted_tokens, usage.drafted_tokens);
            }
            return ids(fixture);
        };
        EXPECT_EQ(run(drafting(1)), run({.slots = 1}));
    }
}

TEST(Drafts, AreTriedOnlyAsFarAsTheAnswerMayGo) {
    RunnerFixture fixture(kTestModels[0], drafting(1, 48), {.context = 1024, .batch = 64});
    fixture.admit(repeating_prompts(1).front(), 3);
    fixture.run();
    EXPECT_EQ(fixture.answers().at(0).ids.size(), 3u);
    EXPECT_LE(fixture.counters().drafted_tokens.load(), 2u);
}

}  // namespace
}  // namespace coterie::scheduler
