// Random operations on sequences of one pool, compared after each with a model that keeps everything in
// vectors.

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>

#include "kv_cache/byte_stream.h"
#include "kv_cache/sequence_state.h"

namespace coterie {
namespace {

using Bytes = std::vector<std::byte>;
using cpu::CacheType;

constexpr std::uint64_t kSeed = 20240607;
constexpr std::int64_t kUnlimited = 1 << 20;

/// What the sequence should remember: the rows of all parts per position, and each recurrent state that was
/// current.
struct Expected {
    std::vector<Bytes> positions;
    std::vector<float> recurrent;
    std::map<std::int64_t, std::vector<float>> snapshots;
};

struct Pair {
    SequenceState state;
    Expected expected;
};

class Driver {
  public:
    Driver(const StateLayout& layout, std::int64_t pages, std::uint64_t seed)
        : layout_(layout),
          pool_(layout.page_bytes(), layout.page_bytes() * static_cast<std::uint64_t>(pages)),
          random_(seed) {
        add_sequence();
    }

    void step() {
        Pair& pair = pairs_[pick(pairs_.size())];
        switch (pick(8)) {
            case 0:
            case 1:
            case 2:
                append(pair);
                break;
            case 3:
                truncate(pair);
                break;
            case 4:
                fork(pair);
                break;
            case 5:
                snapshot(pair);
                break;
            case 6:
                save_and_restore(pair);
                break;
            case 7:
                replace(pair);
                break;
        }
    }

    void check() const {
        pool_.check_integrity();
        for (const Pair& pair : pairs_) {
            pair.state.check_integrity();
            check_equal(pair);
        }
    }

    void drop_all() {
        pairs_.clear();
        EXPECT_EQ(pool_.free_pages(), pool_.pages());
    }

    int exhaustions() const { return exhaustions_; }

  private:
    std::uint64_t pick(std::uint64_t n) { return random_() % n; }

    void add_sequence() {
        Pair pair{SequenceState(layout_, pool_, {.snapshot_limit = kUnlimited}), {}};
        pair.expected.recurrent.assign(layout_.recurrent_floats(), 0.0f);
        pairs_.push_back(std::move(pair));
    }

    void append(Pair& pair) {
        const auto n = static_cast<std::int64_t>(pick(2) ? 1 + pick(4) : pick(150));
        const std::uint64_t free = pool_.free_pages();
        if (!pair.state.prepare(n)) {
            ++exhaustions_;
            EXPECT_EQ(pool_.free_pages(), free);
            EXPECT_LE(free, static_cast<std::uint64_t>(pages_for(n)));
            return;
        }
        for (std::int64_t i = 0; i < n; ++i) write_position(pair);
        for (std::int64_t layer = 0; layer < layout_.layers(); ++layer) {
            if (!layout_.attends(layer) && n > 0) write_recurrent(pair, layer);
        }
        pair.state.advance(n);
    }

    void write_position(Pair& pair) {
        const auto position = static_cast<std::int64_t>(pair.expected.positions.size());
        Bytes all;
        for (std::int64_t layer = 0; layer < layout_.layers(); ++layer) {
            if (!layout_.attends(layer)) continue;
            write_row(pair.state.key_row(layer, position), layout_.keys(layer), all);
            if (&layout_.keys(layer) == &layout_.values(layer)) continue;
            write_row(pair.state.value_row(layer, position), layout_.values(layer), all);
        }
        pair.expected.positions.push_back(std::move(all));
    }

    void write_row(std::byte* row, const PagePart& part, Bytes& all) {
        for (std::uint64_t i = 0; i < part.row_bytes; ++i) all.push_back(row[i] = std::byte(random_()));
    }

    void write_recurrent(Pair& pair, std::int64_t layer) {
        const std::span<float> state = pair.state.recurrent(layer);
        for (std::size_t i = 0; i < state.size(); ++i) {
            state[i] = static_cast<float>(pick(1000));
            pair.expected.recurrent[layout_.recurrent_offset(layer) + i] = state[i];
        }
    }

    void truncate(Pair& pair) {
        Expected& expected = pair.expected;
        const auto length = static_cast<std::int64_t>(expected.positions.size());
        const auto n = static_cast<std::int64_t>(pick(expected.positions.size() + 1));
        auto after = expected.snapshots.upper_bound(n);
        std::int64_t target = n;
        if (!expected.recurrent.empty() && n < length) {
            target = after == expected.snapshots.begin() ? 0 : std::prev(after)->first;
            if (target == 0) {
                std::fill(expected.recurrent.begin(), expected.recurrent.end(), 0.0f);
            } else {
                expected.recurrent = expected.snapshots.at(target);
            }
        }
        EXPECT_EQ(pair.state.truncate(n), target);
        expected.positions.resize(static_cast<std::size_t>(target));
        expected.snapshots.erase(expected.snapshots.upper_bound(target), expected.snapshots.end());
    }

    void fork(const Pair& pair) {
        if (pairs_.size() >= 6) return;
        Pair copy{pair.state.fork(), pair.expected};
        pairs_.push_back(std::move(copy));
    }

    void snapshot(Pair& pair) {
        pair.state.snapshot();
        const auto length = static_cast<std::int64_t>(pair.expected.positions.size());
        if (length > 0 && !pair.expected.recurrent.empty())
            pair.expected.snapshots[length] = pair.expected.recurrent;
    }

    void save_and_restore(Pair& pair) {
        MemorySink sink;
        pair.state.save(sink, 7);
        MemorySource source(sink.bytes());
        auto restored = SequenceState::restore(layout_, pool_, source, 7, {.snapshot_limit = kUnlimited});
        if (!restored) {
            ++exhaustions_;
            EXPECT_LT(pool_.free_pages(), static_cast<std::uint64_t>(pages_for(pair.state.length())));
            return;
        }
        MemorySink again;
        restored->save(again, 7);
        EXPECT_TRUE(again.bytes() == sink.bytes());
        pair.state = std::move(*restored);
    }

    void replace(Pair& pair) {
        if (pick(3) > 0) return;
        std::swap(pair, pairs_.back());
        pairs_.pop_back();
        if (pairs_.empty()) add_sequence();
    }

    void check_equal(const Pair& pair) const {
        ASSERT_EQ(pair.state.length(), static_cast<std::int64_t>(pair.expected.positions.size()));
        for (std::int64_t position = 0; position < pair.state.length(); ++position) {
            ASSERT_TRUE(read_position(pair.state, position) ==
                        pair.expected.positions[static_cast<std::size_t>(position)])
                << "position " << position;
        }
        SequenceState copy = pair.state.fork();
        for (std::int64_t layer = 0; layer < layout_.layers(); ++layer) {
            if (layout_.attends(layer)) continue;
            const std::span<float> state = copy.recurrent(layer);
            ASSERT_TRUE(std::equal(state.begin(), state.end(),
                                   pair.expected.recurrent.begin() +
                                       static_cast<std::ptrdiff_t>(layout_.recurrent_offset(layer))));
        }
    }

    /// Through the addresses that attention uses, head by head.
    Bytes read_position(const SequenceState& state, std::int64_t position) const {
        Bytes all;
        for (std::int64_t layer = 0; layer < layout_.layers(); ++layer) {
            if (!layout_.attends(layer)) continue;
            const PagePart& keys = layout_.keys(layer);
            const PagePart& values = layout_.values(layer);
            for (std::int64_t h = 0; h < keys.heads; ++h)
                read_head(state.key_pages(layer, h), keys, position, all);
            if (&keys == &values) continue;
            for (std::int64_t h = 0; h < values.heads; ++h) {
                read_head(state.value_pages(layer, h), values, position, all);
            }
        }
        return all;
    }

    static void read_head(const std::byte* const* pages, const PagePart& part, std::int64_t position,
                          Bytes& all) {
        const std::byte* row = pages[position / kPageTokens] +
                               static_cast<std::uint64_t>(position % kPageTokens) * part.row_bytes;
        all.insert(all.end(), row, row + part.head_bytes);
    }

    const StateLayout& layout_;
    BlockPool pool_;
    std::mt19937_64 random_;
    std::vector<Pair> pairs_;
    int exhaustions_ = 0;
};

void run(const StateLayout& layout, std::int64_t pages, int steps) {
    SCOPED_TRACE("seed " + std::to_string(kSeed));
    Driver driver(layout, pages, kSeed);
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
        driver.step();
        driver.check();
    }
    if (layout.page_bytes() > 0) {
        EXPECT_GT(driver.exhaustions(), 0) << "the pool was too large to be exhausted";
    }
    driver.drop_all();
}

TEST(SequenceModel, AttentionOfDifferentWidths) {
    run(StateLayout({KeyValueLayer{2, 6, 3, CacheType::F16, CacheType::F32},
                     KeyValueLayer{1, 32, 64, CacheType::Q8_0, CacheType::Q8_0}}),
        12, 600);
}

TEST(SequenceModel, LatentRows) {
    run(StateLayout({LatentLayer{36, 32, CacheType::F16}, LatentLayer{64, 32, CacheType::Q8_0}}), 12, 600);
}

TEST(SequenceModel, RecurrentBesideAttention) {
    run(StateLayout(
            {RecurrentLayer{5}, KeyValueLayer{2, 4, 4, CacheType::F16, CacheType::F16}, RecurrentLayer{17}}),
        12, 600);
}

TEST(SequenceModel, RecurrentOnly) { run(StateLayout({RecurrentLayer{5}, RecurrentLayer{3}}), 0, 600); }

}  // namespace
}  // namespace coterie
