#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>

#include "kernels/cpu/ops_testing.h"
#include "kernels/reference/reference.h"

namespace coterie::cpu {
namespace {

using namespace testing;

constexpr std::int64_t kPagePositions = 64;

struct Shape {
    std::int64_t heads = 4;
    std::int64_t key_width = 64;
    std::int64_t value_width = 64;
    CacheType key_type = CacheType::F32;
    CacheType value_type = CacheType::F32;
    std::int64_t first = 0;
    std::int64_t last = 99;
    bool sinks = false;
    Values values = Values::Ordinary;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
    return out << shape.heads << " heads, keys " << shape.key_width << " type "
               << static_cast<int>(shape.key_type) << ", values " << shape.value_width << " type "
               << static_cast<int>(shape.value_type) << ", positions " << shape.first << ".." << shape.last
               << (shape.sinks ? ", sinks" : "");
}

/// The pages of one key-value head. Rows that are not visible hold NaN, and each page ends at a guard page
/// with its last row, so that whatever is read beyond shows.
class Pages {
  public:
    Pages(CacheType type, std::int64_t width, const Shape& shape, SplitMix64& random)
        : type_(type), stride_(cache_row_bytes(type, width) + 12) {
        const std::int64_t bytes = (kPagePositions - 1) * stride_ + cache_row_bytes(type, width);
        for (std::int64_t page = 0; page <= shape.last / kPagePositions; ++page) {
            memory_.push_back(std::make_unique<GuardedBytes>(static_cast<std::size_t>(bytes), Guard::After));
            std::memset(memory_.back()->data(), 0xff, static_cast<std::size_t>(bytes));
            pointers_.push_back(memory_.back()->data());
        }
        for (std::int64_t position = shape.first; position <= shape.last; ++position) {
            const std::vector<float> row = random_values(shape.values, width, random);
            reference::store_cache(type, row.data(), width, row_at(position));
        }
    }

    const std::byte* const* pages() const { return pointers_.data(); }
    std::int64_t stride() const { return stride_; }
    double value(std::int64_t position, std::int64_t i) const {
        return reference::load_cache(type_, row_at(position), i);
    }

  private:
    std::byte* row_at(std::int64_t position) const {
        return memory_[static_cast<std::size_t>(position / kPagePositions)]->data() +
               position % kPagePositions * stride_;
    }

    CacheType type_;
    std::int64_t stride_;
    std::vector<std::unique_ptr<GuardedBytes>> memory_;
    std::vector<const std::byte*> pointers_;
};

class Case {
  public:
    Case(const Shape& shape, SplitMix64& random)
        : shape_(shape),
          keys_(shape.key_type, shape.key_width, shape, random),
          values_(shape.value_type, shape.value_width, shape, random),
          queries_(random_values(shape.values, shape.heads * shape.key_width, random)),
          sinks_(random_values(Values::Ordinary, shape.heads, random)) {}

    std::vector<float> run(const KernelTable& table) {
        constexpr std::int64_t kGap = 3;
        const std::int64_t stride = shape_.value_width + kGap;
        GuardedFloats out(shape_.heads * stride - kGap);
        std::fill_n(out.data(), shape_.heads * stride - kGap, 77.0f);
        table.attention({.queries = queries_.data(),
                         .heads = shape_.heads,
                         .key_width = shape_.key_width,
                         .value_width = shape_.value_width,
                         .key_pages = keys_.pages(),
                         .value_pages = values_.pages(),
                         .key_stride = keys_.stride(),
                         .value_stride = values_.stride(),
                         .key_type = shape_.key_type,
                         .value_type = shape_.value_type,
                         .first = shape_.first,
                         .last = shape_.last,
                         .scale = kScale,
                         .sinks = shape_.sinks ? sinks_.data() : nullptr,
                         .out = out.data(),
                         .out_stride = stride});
        return out.copy();
    }

    /// Plain softmax attention of one head in binary64.
    std::vector<double> exact(std::int64_t head) const {
        std::vector<double> scores;
        for (std::int64_t position = shape_.first; position <= shape_.last; ++position) {
            double dot = 0.0;
            for (std::int64_t i = 0; i < shape_.key_width; ++i) {
                dot += queries_[static_cast<std::size_t>(head * shape_.key_width + i)] *
                       keys_.value(position, i);
            }
            scores.push_back(dot * kScale);
        }
        const double sink = sinks_[static_cast<std::size_t>(head)];
        double maximum = *std::max_element(scores.begin(), scores.end());
        if (shape_.sinks) maximum = std::max(maximum, sink);
        double sum = shape_.sinks ? std::exp(sink - maximum) : 0.0;
        for (double& score : scores) sum += score = std::exp(score - maximum);
        std::vector<double> out(static_cast<std::size_t>(shape_.value_width));
        for (std::size_t d = 0; d < out.size(); ++d) {
            for (std::size_t p = 0; p < scores.size(); ++p) {
                const auto position = shape_.first + static_cast<std::int64_t>(p);
                out[d] += scores[p] / sum * values_.value(position, static_cast<std::int64_t>(d));
            }
        }
        return out;
    }

    const Shape& shape() const { return shape_; }

  private:
    static constexpr float kScale = 0.125f;
    Shape shape_;
    Pages keys_;
    Pages values_;
    std::vector<float> queries_;
    std::vector<float> sinks_;
};

void expect_near_exact(Case& test) {
    const std::vector<float> out = test.run(scalar_table());
    const std::int64_t stride = test.shape().value_width + 3;
    for (std::int64_t head = 0; head < test.shape().heads; ++head) {
        const std::vector<double> exact = test.exact(head);
        for (std::size_t d = 0; d < exact.size(); ++d) {
            ASSERT_NEAR(out[static_cast<std::size_t>(head * stride) + d], exact[d], 1e-5)
                << test.shape() << ", head " << head << ", column " << d;
        }
    }
}

void expect_same_bits(Case& test) {
    const std::vector<float> expected = test.run(scalar_table());
    for (const KernelTable* table : vector_tables()) {
        ASSERT_TRUE(same_bits(expected, test.run(*table))) << table->name << ": " << test.shape();
    }
}

void check(const Shape& shape, SplitMix64& random) {
    Case test(shape, random);
    if (shape.values == Values::Ordinary) expect_near_exact(test);
    expect_same_bits(test);
}

TEST(Attention, PageEdges) {
    SplitMix64 random(kSeed);
    for (const std::int64_t positions : {1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200}) {
        for (const bool sinks : {false, true}) check({.last = positions - 1, .sinks = sinks}, random);
    }
}

TEST(Attention, WindowsThatBeginAndEndAnywhere) {
    SplitMix64 random(kSeed);
    for (const std::int64_t first : {1, 5, 62, 63, 64, 65, 100, 127, 128, 150}) {
        for (const std::int64_t length : {1, 4, 30, 64, 70, 130}) {
            check({.heads = 3, .first = first, .last = first + length - 1, .sinks = first % 2 == 0}, random);
        }
    }
}

TEST(Attention, EveryPairOfCacheTypes) {
    SplitMix64 random(kSeed);
    const CacheType types[] = {CacheType::F32, CacheType::F16, CacheType::Q8_0};
    for (const CacheType keys : types) {
        for (const CacheType values : types) {
            check({.key_width = 128, .value_width = 96, .key_type = keys, .value_type = values, .last = 130},
                  random);
        }
    }
}

TEST(Attention, EveryNumberOfHeads) {
    SplitMix64 random(kSeed);
    for (std::int64_t heads = 1; heads <= 35; ++heads) {
        check({.heads = heads, .key_type = CacheType::F16, .first = 3, .last = 70}, random);
    }
}

TEST(Attention, OddWidths) {
    SplitMix64 random(kSeed);
    for (const CacheType type : {CacheType::F32, CacheType::F16}) {
        for (const std::int64_t width : {1, 7, 8, 20, 31, 33, 40, 80, 100}) {
            check({.heads = 3,
                   .key_width = width,
                   .value_width = 101 - width,
                   .key_type = type,
                   .value_type = type},
                  random);
        }
    }
}

TEST(Attention, LatentKeysThatManyHeadsShare) {
    SplitMix64 random(kSeed);
    check({.heads = 128,
           .key_width = 576,
           .value_width = 512,
           .key_type = CacheType::F16,
           .value_type = CacheType::F16,
           .last = 66},
          random);
}

TEST(Attention, KeysWiderThanTheScratch) {
    SplitMix64 random(kSeed);
    check({.heads = 2, .key_width = 1100, .value_width = 1100, .last = 70}, random);
    check({.heads = 2, .key_width = 1024, .value_width = 2048, .last = 70}, random);
}

TEST(Attention, NanAndInfinityGiveTheSameBits) {
    SplitMix64 random(kSeed);
    for (int repeat = 0; repeat < 20; ++repeat) {
        check({.key_width = 40, .value_width = 40, .last = 150, .sinks = true, .values = Values::Special},
              random);
        check({.key_width = 40, .value_width = 40, .last = 150, .values = Values::Wide}, random);
    }
}

/// A result depends on the positions it sees, not on pages before a window: what makes chunking invisible.
TEST(Attention, OneVisiblePositionReturnsItsValue) {
    SplitMix64 random(kSeed);
    Case test({.heads = 2, .first = 130, .last = 130}, random);
    const std::vector<float> out = test.run(kernels());
    for (std::size_t d = 0; d < 64; ++d) EXPECT_EQ(out[d], static_cast<float>(test.exact(0)[d]));
}

}  // namespace
}  // namespace coterie::cpu
