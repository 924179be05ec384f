#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "base/split_mix.h"
#include "engine/engine.h"
#include "kernels/cpu/kernels.h"
#include "test_models.h"

namespace coterie::engine {
namespace {

constexpr std::int64_t kTokens = 150;  // more than two cells of the position grid

Engine make_engine(const TestModel& model, int threads) {
    EngineOptions options;
    options.threads = threads;
    options.context = 2048;
    options.batch = 256;
    options.cache = model.cache;
    return Engine(std::make_shared<gguf::Archive>(gguf::Archive::open(model.path)), options);
}

std::vector<TokenId> random_tokens(const Engine& engine, std::int64_t count, SplitMix64& random) {
    std::vector<TokenId> tokens;
    for (std::int64_t i = 0; i < count; ++i) {
        tokens.push_back(
            static_cast<TokenId>(random.next() % static_cast<std::uint64_t>(engine.config().vocabulary)));
    }
    return tokens;
}

class DeterminismTest : public testing::TestWithParam<TestModel> {
  protected:
    void SetUp() override {
        SCOPED_TRACE("COTERIE_TEST_SEED=" + std::to_string(seed()));
        Engine engine = make_engine(GetParam(), 2);
        tokens_ = random_tokens(engine, kTokens, random_);
        Sequence sequence = engine.make_sequence();
        expected_ = append(engine, sequence, tokens_);
    }

    std::span<const TokenId> tokens(std::int64_t begin, std::int64_t end) const {
        return std::span<const TokenId>(tokens_).subspan(static_cast<std::size_t>(begin),
                                                         static_cast<std::size_t>(end - begin));
    }

    void expect_rows(const Rows& rows, std::int64_t first) const {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            ASSERT_EQ(rows[i], expected_[static_cast<std::size_t>(first) + i])
                << "position " << first + static_cast<std::int64_t>(i) << ", COTERIE_TEST_SEED=" << seed();
        }
    }

    SplitMix64 random_{seed()};
    std::vector<TokenId> tokens_;
    Rows expected_;
};

TEST_P(DeterminismTest, OnAnyNumberOfThreads) {
    for (const int threads : {1, 3, 5}) {
        Engine engine = make_engine(GetParam(), threads);
        Sequence sequence = engine.make_sequence();
        expect_rows(append(engine, sequence, tokens_), 0);
    }
}

TEST_P(DeterminismTest, OnEveryInstructionSetOfThisMachine) {
    constexpr std::int64_t kFew = 70;  // scalar code is slow
    const cpu::InstructionSet best = cpu::kernels().instruction_set;
    for (const auto set :
         {cpu::InstructionSet::Scalar, cpu::InstructionSet::Avx2, cpu::InstructionSet::Avx512}) {
        if (!cpu::kernels_for(set)) continue;
        cpu::force_instruction_set(set);
        Engine engine = make_engine(GetParam(), 2);
        Sequence sequence = engine.make_sequence();
        expect_rows(append(engine, sequence, tokens(0, kFew)), 0);
    }
    cpu::force_instruction_set(best);
}

TEST_P(DeterminismTest, InAnyChunks) {
    Engine engine = make_engine(GetParam(), 2);
    for (int round = 0; round < 4; ++round) {
        Sequence sequence = engine.make_sequence();
        for (std::int64_t begin = 0; begin < kTokens;) {
            const std::int64_t most = round == 0 ? 1 : 1 + static_cast<std::int64_t>(random_.next() % 40);
            const std::int64_t end = std::min(kTokens, begin + most);
            expect_rows(append(engine, sequence, tokens(begin, end)), begin);
            begin = end;
        }
    }
}

TEST_P(DeterminismTest, InAnyCompany) {
    Engine engine = make_engine(GetParam(), 2);
    Sequence watched = engine.make_sequence();
    std::vector<Sequence> others;
    for (int i = 0; i < 3; ++i) others.push_back(engine.make_sequence());
    for (std::int64_t begin = 0; begin < kTokens;) {
        const std::int64_t end =
            std::min(kTokens, begin + 1 + static_cast<std::int64_t>(random_.next() % 20));
        std::vector<std::vector<TokenId>> company;
        for (std::size_t i = 0; i < others.size(); ++i) {
            company.push_back(
                random_tokens(engine, 1 + static_cast<std::int64_t>(random_.next() % 9), random_));
        }
        const std::vector<Slice> slices = {{&others[0], company[0], Slice::Logits::Last},
                                           {&watched, tokens(begin, end), Slice::Logits::All},
                                           {&others[1], company[1], Slice::Logits::None},
                                           {&others[2], company[2], Slice::Logits::All}};
        const auto first = static_cast<std::int64_t>(company[0].size());
        Rows rows;
        engine.step(slices, [&](std::int64_t row, std::span<const float> logits) {
            if (row >= first && row < first + end - begin) rows.emplace_back(logits.begin(), logits.end());
        });
        ASSERT_EQ(static_cast<std::int64_t>(rows.size()), end - begin);
        expect_rows(rows, begin);
        begin = end;
    }
}

TEST_P(DeterminismTest, AfterAReusedPrefix) {
    Engine engine = make_engine(GetParam(), 2);
    Sequence first = engine.make_sequence();
    for (int round = 0; round < 6; ++round) {
        // Another continuation is computed and given up; then the sequence goes on as before.
        const auto keep = static_cast<std::int64_t>(random_.next() % kTokens);
        if (first.length() < keep) append(engine, first, tokens(first.length(), keep));
        first.state().snapshot();
        append(engine, first,
               random_tokens(engine, 1 + static_cast<std::int64_t>(random_.next() % 70), random_));
        const std::int64_t kept = first.truncate(std::min(keep, first.length()));
        ASSERT_LE(kept, keep);

        Sequence fork = first.fork();
        expect_rows(append(engine, fork, tokens(kept, kTokens)), kept);
        expect_rows(append(engine, first, tokens(kept, kTokens)), kept);
        fork.state().check_integrity();
        first.state().check_integrity();
    }
}

TEST_P(DeterminismTest, ExtendComputesOnlyWhatIsNew) {
    Engine engine = make_engine(GetParam(), 2);
    Sequence sequence = engine.make_sequence();
    for (const std::int64_t end : {40, 100, 100, 150}) {
        const std::span<const float> logits = engine.extend(sequence, tokens(0, end));
        expect_rows({{logits.begin(), logits.end()}}, end - 1);
        EXPECT_EQ(sequence.length(), end);
    }
}

INSTANTIATE_TEST_SUITE_P(Models, DeterminismTest, testing::ValuesIn(test_models()),
                         [](const auto& named) { return named.param.name; });

}  // namespace
}  // namespace coterie::engine
