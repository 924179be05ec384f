#include "engine/forward/step_parts.h"

#include <gtest/gtest.h>
#include <numeric>

#include "base/split_mix.h"

namespace coterie::engine {
namespace {

struct Whole {
    std::vector<std::int32_t> tokens;
    std::vector<StepSlice> slices;
    std::vector<std::int64_t> logits_rows;

    void add(std::int64_t position, std::int64_t count) {
        slices.push_back({nullptr, position, static_cast<std::int64_t>(tokens.size()), count});
        tokens.resize(tokens.size() + static_cast<std::size_t>(count));
        std::iota(tokens.begin(), tokens.end(), 0);
    }
    Step step() const { return {.tokens = tokens, .slices = slices, .logits_rows = logits_rows}; }
};

std::vector<std::int64_t> rows_of(const StepParts& parts) {
    std::vector<std::int64_t> rows;
    for (int i = 0; i < parts.size(); ++i) rows.push_back(static_cast<std::int64_t>(parts[i].tokens.size()));
    return rows;
}

using Rows = std::vector<std::int64_t>;

TEST(StepParts, WhatFitsStaysWhole) {
    Whole whole;
    whole.add(10, 100);
    whole.logits_rows = {99};
    StepParts parts;
    const Step step = whole.step();
    parts.split(step, 128);
    EXPECT_EQ(rows_of(parts), Rows{100});
    EXPECT_EQ(parts[0].logits_rows[0], 99);
    EXPECT_EQ(parts[0].tokens.data(), whole.tokens.data());
}

TEST(StepParts, AShortStepFitsInLessThanAPage) {
    Whole whole;
    whole.add(60, 10);
    StepParts parts;
    const Step step = whole.step();
    parts.split(step, 10);
    EXPECT_EQ(rows_of(parts), Rows{10});
}

TEST(StepParts, CutsOnTheGridOfPositions) {
    Whole whole;
    whole.add(10, 300);
    whole.logits_rows = {0, 117, 118, 299};
    StepParts parts;
    const Step step = whole.step();
    parts.split(step, 128);
    EXPECT_EQ(rows_of(parts), (Rows{118, 128, 54}));
    EXPECT_EQ(parts[1].slices[0].position, 128);
    EXPECT_EQ(parts[1].slices[0].first_row, 0);
    EXPECT_EQ(parts.first_row(2), 246);
    EXPECT_EQ(parts[0].logits_rows.size(), 2u);
    EXPECT_EQ(parts[1].logits_rows[0], 0);
    EXPECT_EQ(parts[2].logits_rows[0], 53);
}

TEST(StepParts, ASequenceThatCannotBeCutInTheRoomLeftBeginsAPart) {
    Whole whole;
    whole.add(0, 100);
    whole.add(5, 70);
    StepParts parts;
    const Step step = whole.step();
    parts.split(step, 128);
    EXPECT_EQ(rows_of(parts), (Rows{100, 70}));
}

TEST(StepParts, PartsTogetherAreTheStep) {
    constexpr std::uint64_t kSeed = 11;
    SplitMix64 random{kSeed};
    StepParts parts;
    for (int round = 0; round < 200; ++round) {
        Whole whole;
        for (std::uint64_t s = 1 + random.next() % 5; s > 0; --s)
            whole.add(static_cast<std::int64_t>(random.next() % 500),
                      static_cast<std::int64_t>(1 + random.next() % 400));
        for (std::size_t row = 0; row < whole.tokens.size(); ++row)
            if (random.next() % 7 == 0) whole.logits_rows.push_back(static_cast<std::int64_t>(row));
        const std::int64_t most = 64 + static_cast<std::int64_t>(random.next() % 200);
        const Step step = whole.step();
        parts.split(step, most);
        std::size_t slice = 0;
        std::int64_t done = 0;
        std::size_t logits = 0;
        for (int i = 0; i < parts.size(); ++i) {
            const Step part = parts[i];
            ASSERT_LE(part.tokens.size(), static_cast<std::size_t>(most)) << "seed " << kSeed;
            ASSERT_FALSE(part.tokens.empty());
            for (const StepSlice& piece : part.slices) {
                const StepSlice& from = whole.slices[slice];
                ASSERT_EQ(parts.first_row(i) + piece.first_row, from.first_row + done);
                ASSERT_EQ(piece.position, from.position + done);
                done += piece.count;
                if (done == from.count) {
                    ++slice;
                    done = 0;
                } else {
                    ASSERT_EQ((piece.position + piece.count) % kPageTokens, 0) << "seed " << kSeed;
                }
            }
            for (const std::int64_t row : part.logits_rows)
                ASSERT_EQ(parts.first_row(i) + row, whole.logits_rows[logits++]) << "seed " << kSeed;
        }
        ASSERT_EQ(slice, whole.slices.size());
        ASSERT_EQ(logits, whole.logits_rows.size());
    }
}

}  // namespace
}  // namespace coterie::engine
