#include "kv_cache/sequence_state.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace coterie {
namespace {

using cpu::CacheType;

/// One attention layer of two kv heads of four f32 values, one recurrent layer.
StateLayout hybrid_layout() {
    return StateLayout({KeyValueLayer{2, 4, 4, CacheType::F32, CacheType::F32}, RecurrentLayer{3}});
}

StateLayout attention_layout() {
    return StateLayout({KeyValueLayer{2, 4, 4, CacheType::F32, CacheType::F32}});
}

void write_row(std::byte* row, float value, std::int64_t values) {
    for (std::int64_t i = 0; i < values; ++i) std::memcpy(row + i * 4, &value, 4);
}

float read_key(const SequenceState& state, std::int64_t position, std::int64_t head = 0) {
    const PagePart& part = state.layout().keys(0);
    float value = 0;
    std::memcpy(&value,
                state.key_pages(0, head)[position / 64] + (position % 64) * std::int64_t(part.row_bytes), 4);
    return value;
}

/// Each position's keys hold `mark` + position; a recurrent state holds the number of tokens.
void append(SequenceState& state, std::int64_t n, float mark) {
    ASSERT_TRUE(state.prepare(n));
    for (std::int64_t p = state.length(); p < state.length() + n; ++p) {
        write_row(state.key_row(0, p), mark + static_cast<float>(p), 8);
        write_row(state.value_row(0, p), -mark - static_cast<float>(p), 8);
    }
    state.advance(n);
    if (state.layout().layers() > 1) state.recurrent(1)[0] = static_cast<float>(state.length());
}

TEST(SequenceState, RowsAreWhatAttentionReads) {
    const StateLayout layout = attention_layout();
    BlockPool pool(layout.page_bytes(), 4 * layout.page_bytes());
    SequenceState state(layout, pool);
    append(state, 130, 1000);
    EXPECT_EQ(state.length(), 130);
    EXPECT_EQ(pool.free_pages(), 1u);
    EXPECT_EQ(read_key(state, 129), 1129.0f);
    EXPECT_EQ(state.key_pages(0, 1)[1], state.key_pages(0, 0)[1] + 16);
    EXPECT_EQ(state.key_row(0, 65), state.key_pages(0)[1] + 32);
    EXPECT_EQ(state.value_row(0, 65), state.value_pages(0)[1] + 32);
    state.check_integrity();
}

TEST(SequenceState, ALatentLayersValuesAreItsKeys) {
    const StateLayout layout({LatentLayer{576, 512, CacheType::F16}});
    BlockPool pool(layout.page_bytes(), layout.page_bytes());
    SequenceState state(layout, pool);
    ASSERT_TRUE(state.prepare(64));
    EXPECT_EQ(state.key_pages(0), state.value_pages(0));
    EXPECT_EQ(state.key_row(0, 63), state.key_pages(0)[0] + 63 * 576 * 2);
}

TEST(SequenceState, AddressesStayDuringAStepAndPagesForever) {
    const StateLayout layout = attention_layout();
    BlockPool pool(layout.page_bytes(), 100 * layout.page_bytes());
    SequenceState state(layout, pool);
    ASSERT_TRUE(state.prepare(100));
    const std::byte* const* pages = state.key_pages(0);
    const std::byte* const first = pages[0];
    state.advance(40);
    state.advance(60);
    EXPECT_EQ(state.key_pages(0), pages);
    append(state, 5000, 0);
    EXPECT_EQ(state.key_pages(0)[0], first);
}

TEST(SequenceState, ExhaustionChangesNothing) {
    const StateLayout layout = attention_layout();
    BlockPool pool(layout.page_bytes(), 2 * layout.page_bytes());
    SequenceState state(layout, pool);
    append(state, 100, 0);
    EXPECT_FALSE(state.prepare(29));
    EXPECT_FALSE(state.prepare(INT64_MAX / 2));
    EXPECT_EQ(state.length(), 100);
    EXPECT_EQ(read_key(state, 99), 99.0f);
    append(state, 28, 0);
    EXPECT_EQ(state.truncate(64), 64);
    EXPECT_EQ(pool.free_pages(), 1u);
}

TEST(SequenceState, AForkSharesPagesUntilOneOfThemWrites) {
    const StateLayout layout = attention_layout();
    BlockPool pool(layout.page_bytes(), 4 * layout.page_bytes());
    SequenceState first(layout, pool);
    append(first, 100, 0);
    SequenceState second = first.fork();
    EXPECT_EQ(pool.free_pages(), 2u);
    append(second, 1, 5000);
    EXPECT_EQ(pool.free_pages(), 1u) << "only the partial page is copied";
    append(first, 1, 7000);
    EXPECT_EQ(pool.free_pages(), 1u) << "the first is alone on its page again";
    EXPECT_EQ(first.key_pages(0)[0], second.key_pages(0)[0]);
    EXPECT_EQ(read_key(first, 100), 7100.0f);
    EXPECT_EQ(read_key(second, 100), 5100.0f);
    EXPECT_EQ(read_key(second, 99, 1), 99.0f);
    first.check_integrity();
    second.check_integrity();
}

TEST(SequenceState, AForkAtAPageBoundaryCopiesNothing) {
    const StateLayout layout = attention_layout();
    BlockPool pool(layout.page_bytes(), 3 * layout.page_bytes());
    SequenceState first(layout, pool);
    append(first, 64, 0);
    SequenceState second = first.fork();
    append(first, 1, 1000);
    append(second, 1, 2000);
    EXPECT_EQ(pool.free_pages(), 0u);
    EXPECT_EQ(read_key(first, 64), 1064.0f);
    EXPECT_EQ(read_key(second, 64), 2064.0f);
}

TEST(SequenceState, ACopyThatDoesNotFitIsExhaustion) {
    const StateLayout layout = attention_layout();
    BlockPool pool(layout.page_bytes(), layout.page_bytes());
    SequenceState first(layout, pool);
    append(first, 10, 0);
    {
        const SequenceState second = first.fork();
        EXPECT_FALSE(first.prepare(1));
        EXPECT_TRUE(first.prepare(0));
    }
    EXPECT_TRUE(first.prepare(1));
}

TEST(SequenceState, AForkBetweenPrepareAndAdvanceKeepsItsTokens) {
    const StateLayout layout = attention_layout();
    BlockPool pool(layout.page_bytes(), 8 * layout.page_bytes());
    SequenceState first(layout, pool);
    append(first, 70, 0);
    ASSERT_TRUE(first.prepare(100));
    SequenceState second = first.fork();
    append(second, 10, 3000);
    ASSERT_TRUE(first.prepare(1));
    append(first, 1, 4000);
    EXPECT_EQ(read_key(first, 69), 69.0f);
    EXPECT_EQ(read_key(first, 70), 4070.0f);
    EXPECT_EQ(read_key(second, 70), 3070.0f);
    first.check_integrity();
    second.check_integrity();
}

TEST(SequenceState, TruncateComesBackToASnapshotOrTheStart) {
    const StateLayout layout = hybrid_layout();
    BlockPool pool(layout.page_bytes(), 8 * layout.page_bytes());
    SequenceState state(layout, pool);
    append(state, 70, 0);
    state.snapshot();
    append(state, 30, 0);
    EXPECT_EQ(state.restorable(100), 100);
    EXPECT_EQ(state.restorable(99), 70);
    EXPECT_EQ(state.restorable(69), 0);
    EXPECT_EQ(state.length(), 100);
    EXPECT_EQ(state.truncate(80), 70);
    EXPECT_EQ(state.recurrent(1)[0], 70.0f);
    EXPECT_EQ(state.length(), 70);
    append(state, 5, 0);
    EXPECT_EQ(state.truncate(70), 70) << "a snapshot serves more than once";
    EXPECT_EQ(state.truncate(3), 0);
    EXPECT_EQ(state.recurrent(1)[0], 0.0f);
    EXPECT_EQ(pool.free_pages(), 8u);
    EXPECT_TRUE(state.snapshots().entries().empty());
}

TEST(SequenceState, WithoutRecurrentLayersEveryLengthCanBeRestored) {
    const StateLayout layout = attention_layout();
    BlockPool pool(layout.page_bytes(), 8 * layout.page_bytes());
    SequenceState state(layout, pool);
    append(state, 200, 0);
    state.snapshot();
    EXPECT_TRUE(state.snapshots().entries().empty());
    EXPECT_EQ(state.truncate(77), 77);
    EXPECT_EQ(read_key(state, 76), 76.0f);
}

TEST(SequenceState, CrowdedSnapshotsGoFirst) {
    const StateLayout layout({RecurrentLayer{1}});
    BlockPool pool(0, 0);
    SequenceState state(layout, pool, {.snapshot_limit = 3});
    const auto snapshot_at = [&](std::int64_t position) {
        ASSERT_TRUE(state.prepare(position - state.length()));
        state.advance(position - state.length());
        state.recurrent(0)[0] = static_cast<float>(position);
        state.snapshot();
    };
    for (const std::int64_t position : {100, 200, 201, 202, 203}) snapshot_at(position);
    std::vector<std::int64_t> positions;
    for (const auto& entry : state.snapshots().entries()) {
        positions.push_back(entry->position);
        EXPECT_EQ(entry->state[0], static_cast<float>(entry->position));
    }
    EXPECT_THAT(positions, testing::ElementsAre(100, 200, 203));
}

TEST(SequenceState, AForkKeepsSnapshotsThatTheOriginalReplaces) {
    const StateLayout layout({RecurrentLayer{1}});
    BlockPool pool(0, 0);
    SequenceState first(layout, pool, {.snapshot_limit = 1});
    ASSERT_TRUE(first.prepare(10));
    first.advance(5);
    first.recurrent(0)[0] = 5;
    first.snapshot();
    SequenceState second = first.fork();
    first.advance(5);
    first.recurrent(0)[0] = 10;
    first.snapshot();
    ASSERT_TRUE(second.prepare(1));
    second.advance(1);
    EXPECT_EQ(second.truncate(5), 5);
    EXPECT_EQ(second.recurrent(0)[0], 5.0f);
    EXPECT_EQ(first.restorable(9), 0);
}

TEST(SequenceState, UnpreparedStepsAreCaught) {
    const StateLayout layout = attention_layout();
    BlockPool pool(layout.page_bytes(), 2 * layout.page_bytes());
    SequenceState state(layout, pool);
    EXPECT_THROW(state.advance(1), Error);
    ASSERT_TRUE(state.prepare(2));
    state.advance(2);
    EXPECT_THROW(state.advance(1), Error);
    EXPECT_THROW(state.truncate(3), Error);
    EXPECT_THROW(state.truncate(-1), Error);
}

}  // namespace
}  // namespace coterie
