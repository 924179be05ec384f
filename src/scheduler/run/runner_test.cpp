#include "scheduler/run/runner.h"

#include <cstdio>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/scheduler_testing.h"

namespace coterie::scheduler {
namespace {

using testing::ElementsAre;

TEST(Runner, AnswersAsOneAloneWouldWhateverRunsBesideIt) {
    for (const std::string& model : kTestModels) {
        SCOPED_TRACE(model);
        std::vector<std::vector<TokenId>> prompts;
        for (int i = 0; i < 6; ++i) prompts.push_back(random_tokens(20 + 37 * i, 100 + i));
        std::vector<std::vector<TokenId>> alone;
        for (const auto& prompt : prompts) {
            RunnerFixture fixture(model, {.slots = 1}, {.context = 1024, .batch = 512});
            fixture.admit(prompt, 30);
            fixture.run();
            alone.push_back(fixture.answers().at(0).ids);
        }
        RunnerFixture fixture(model, {.slots = 3}, {.context = 1024, .batch = 48});
        fixture.admit_all(prompts, 30);
        for (std::size_t i = 0; i < prompts.size(); ++i) {
            EXPECT_EQ(fixture.answers().at(i).ids, alone[i]) << i;
            EXPECT_EQ(fixture.answers().at(i).finished.reason, FinishReason::Length);
        }
    }
}

TEST(Runner, ReadsASharedPrefixOnce) {
    for (const std::string& model : kTestModels) {
        SCOPED_TRACE(model);
        RunnerFixture fixture(model, {.slots = 10}, {.context = 4096, .batch = 128});
        const std::vector<TokenId> shared = random_tokens(400, 1);
        for (int i = 0; i < 10; ++i) {
            std::vector<TokenId> prompt = shared;
            const std::vector<TokenId> own = random_tokens(20, 50 + i);
            prompt.insert(prompt.end(), own.begin(), own.end());
            fixture.admit(prompt, 5);
        }
        fixture.run();
        std::int64_t computed = 0;
        for (const TestAnswer& answer : fixture.answers()) {
            computed += answer.finished.usage.prompt_tokens - answer.finished.usage.cached_tokens;
        }
        EXPECT_EQ(computed, 400 + 10 * 20);
        EXPECT_EQ(fixture.counters().prompt_tokens.load(), 600u);
    }
}

TEST(Runner, ReadsOnlyWhatAFollowUpTurnAdds) {
    for (const std::string& model : kTestModels) {
        SCOPED_TRACE(model);
        RunnerFixture fixture(model, {.slots = 2}, {.context = 2048, .batch = 256});
        std::vector<TokenId> turn = random_tokens(300, 7);
        fixture.admit(turn, 20);
        fixture.run();
        const std::vector<TokenId> answer = fixture.answers().at(0).ids;
        turn.insert(turn.end(), answer.begin(), answer.end());
        const std::vector<TokenId> question = random_tokens(25, 8);
        turn.insert(turn.end(), question.begin(), question.end());
        fixture.admit(turn, 20);
        fixture.run();
        const Usage& usage = fixture.answers().at(1).finished.usage;
        EXPECT_EQ(usage.cached_tokens, 319);  // the last drawn token was never computed
        EXPECT_EQ(usage.prompt_tokens, 345);
    }
}

TEST(Runner, ReusesWhatStandsBeforeAnEditOfTheLastTurn) {
    for (const std::string& model : kTestModels) {
        SCOPED_TRACE(model);
        RunnerFixture fixture(model, {.slots = 1}, {.context = 4096, .batch = 512});
        std::vector<TokenId> prompt = random_tokens(1500, 3);
        fixture.admit(prompt, 2);
        fixture.run();
        prompt[1400] = (prompt[1400] + 1) % 500;
        fixture.admit(prompt, 2);
        fixture.run();
        // A model with recurrent layers comes back to a snapshot, at most 512 tokens away.
        EXPECT_GE(fixture.answers().at(1).finished.usage.cached_tokens, 1400 - 512);
    }
}

TEST(Runner, LetsAllAnswersFinishWhereTheyWantMoreThanThereIsTogether) {
    for (const std::string& model : kTestModels) {
        SCOPED_TRACE(model);
        std::vector<std::vector<TokenId>> prompts;
        std::vector<std::vector<TokenId>> alone;
        for (int i = 0; i < 4; ++i) {
            prompts.push_back(random_tokens(60 + i, 20 + i));
            RunnerFixture fixture(model, {.slots = 1}, {.context = 512, .batch = 64});
            fixture.admit(prompts.back(), 400);
            fixture.run();
            alone.push_back(fixture.answers().at(0).ids);
        }
        RunnerFixture fixture(model, {.slots = 4}, {.context = 512, .batch = 64});
        fixture.admit_all(prompts, 400);
        for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(fixture.answers().at(i).ids, alone[i]) << i;
        EXPECT_GT(fixture.counters().suspended.load(), 0u);
    }
}

TEST(Runner, EndsAtTheContextsLastTokenAndNotBefore) {
    RunnerFixture fixture(kTestModels[0], {.slots = 1}, {.context = 128, .batch = 64});
    fixture.admit(random_tokens(127, 1), -1);
    fixture.admit_all({random_tokens(100, 2)}, -1);
    EXPECT_EQ(fixture.answers().at(0).ids.size(), 1u);
    EXPECT_EQ(fixture.answers().at(0).finished.reason, FinishReason::Length);
    EXPECT_EQ(fixture.answers().at(1).ids.size(), 28u);
}

TEST(Runner, StopsWorkingForAReaderWhoLeft) {
    RunnerFixture fixture(kTestModels[0], {.slots = 2}, {.context = 1024, .batch = 64});
    fixture.admit(random_tokens(50, 1), 500);
    fixture.admit(random_tokens(60, 2), 10);
    for (int i = 0; i < 5; ++i) fixture.runner().step();
    fixture.leave(0);
    fixture.run();
    EXPECT_EQ(fixture.counters().cancelled.load(), 1u);
    EXPECT_LT(fixture.counters().generated_tokens.load(), 40u);
    EXPECT_EQ(fixture.answers().at(1).ids.size(), 10u);
}

TEST(Runner, EndsAnAnswerWhoseTimeIsOver) {
    RunnerFixture fixture(kTestModels[0], {.slots = 1}, {.context = 4096, .batch = 64});
    fixture.admit(random_tokens(10, 1), -1, std::chrono::milliseconds(50));
    fixture.run();
    EXPECT_EQ(fixture.answers().at(0).finished.reason, FinishReason::TimeLimit);
    EXPECT_EQ(fixture.counters().timed_out.load(), 1u);
}

TEST(Runner, WaitsForAReaderWhoFellBehindAndLetsOthersGoOn) {
    RunnerFixture fixture(kTestModels[0], {.slots = 2}, {.context = 4096, .batch = 64});
    fixture.admit(random_tokens(10, 1), 600);
    fixture.admit(random_tokens(10, 2), 600);
    fixture.ignore(0);
    fixture.run();  // until nothing can be done
    EXPECT_EQ(fixture.answers().at(1).ids.size(), 600u);
    EXPECT_EQ(fixture.runner().running(), 1);
    fixture.attend(0);
    fixture.run();
    EXPECT_EQ(fixture.answers().at(0).ids.size(), 600u);
}

TEST(Runner, EvictsTheLeastRecentlyUsedWherePagesAreShort) {
    RunnerFixture fixture(kTestModels[0], {.slots = 1}, {.context = 512, .batch = 64});
    for (int i = 0; i < 6; ++i) {
        fixture.admit(random_tokens(200, i), 5);
        fixture.run();
    }
    fixture.admit(random_tokens(200, 5), 5);  // again: still there
    fixture.run();
    EXPECT_EQ(fixture.answers().at(6).finished.usage.cached_tokens, 199);
    fixture.admit(random_tokens(200, 0), 5);  // again: long gone
    fixture.run();
    EXPECT_EQ(fixture.answers().at(7).finished.usage.cached_tokens, 0);
}

TEST(Runner, SavesAndRestoresASlot) {
    for (const std::string& model : kTestModels) {
        SCOPED_TRACE(model);
        const std::string path = testing::TempDir() + "coterie_slot_test.bin";
        const std::vector<TokenId> prompt = random_tokens(100, 1);
        RunnerFixture first(model, {.slots = 2}, {.context = 512, .batch = 64});
        first.admit(prompt, 10);
        first.run();
        const SavedSlot saved = first.runner().save(first.answers().at(0).slot, path);
        EXPECT_EQ(saved.tokens, 109);
        RunnerFixture second(model, {.slots = 2}, {.context = 512, .batch = 64});
        EXPECT_EQ(second.runner().restore(1, path).tokens, 109);
        std::vector<TokenId> next = prompt;
        next.insert(next.end(), first.answers().at(0).ids.begin(), first.answers().at(0).ids.end());
        next.push_back(3);
        second.admit(next, 10);
        second.run();
        EXPECT_EQ(second.answers().at(0).finished.usage.cached_tokens, 109);
        first.admit(next, 10);
        first.run();
        EXPECT_EQ(second.answers().at(0).ids, first.answers().at(1).ids);
        EXPECT_GT(second.runner().erase(second.answers().at(0).slot), 0);
        std::remove(path.c_str());
    }
}

TEST(Runner, RefusesASlotThatIsOfAnotherModelOrDamaged) {
    const std::string path = testing::TempDir() + "coterie_slot_damage_test.bin";
    RunnerFixture first(kTestModels[0], {.slots = 1}, {.context = 512, .batch = 64});
    first.admit(random_tokens(70, 1), 3);
    first.run();
    first.runner().save(0, path);
    RunnerFixture other(kTestModels[1], {.slots = 1}, {.context = 512, .batch = 64});
    EXPECT_THROW(other.runner().restore(0, path), Error);
    std::string bytes = read_bytes(path);
    for (const std::size_t at :
         {std::size_t{0}, std::size_t{9}, std::size_t{25}, std::size_t{40}, bytes.size() / 2}) {
        std::string damaged = bytes;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
        write_bytes(path, damaged);
        EXPECT_THROW(first.runner().restore(0, path), Error) << at;
    }
    write_bytes(path, bytes.substr(0, bytes.size() - 5));
    EXPECT_THROW(first.runner().restore(0, path), Error);
    std::remove(path.c_str());
}

TEST(Runner, MakesEmbeddingsThatDoNotDependOnTheirNeighbours) {
    for (const std::string& model : kTestModels) {
        SCOPED_TRACE(model);
        for (const Pooling pooling : {Pooling::Mean, Pooling::Last}) {
            RunnerFixture alone(model, {.slots = 1}, {.context = 512, .batch = 256});
            alone.embed(random_tokens(100, 1), pooling);
            alone.run();
            RunnerFixture crowd(model, {.slots = 4}, {.context = 1024, .batch = 33});
            crowd.admit(random_tokens(50, 2), 40);
            crowd.embed(random_tokens(100, 1), pooling);
            crowd.embed(random_tokens(30, 3), pooling);
            crowd.run();
            const std::vector<float>& vector = crowd.answers().at(1).finished.embedding;
            EXPECT_EQ(vector, alone.answers().at(0).finished.embedding);
            double squares = 0.0;
            for (const float value : vector) squares += value * value;
            EXPECT_NEAR(squares, 1.0, 1e-5);
            EXPECT_NE(vector, crowd.answers().at(2).finished.embedding);
        }
    }
}

}  // namespace
}  // namespace coterie::scheduler
