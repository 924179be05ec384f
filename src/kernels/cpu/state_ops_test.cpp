#include <gtest/gtest.h>

#include "kernels/cpu/ops_testing.h"
#include "kernels/reference/reference.h"

/// Ops that write a sequence's state: cache rows and the gated delta rule.
namespace coterie::cpu {
namespace {

using namespace testing;

std::vector<std::byte> stored(const KernelTable& table, CacheType type, const std::vector<float>& values) {
    const auto n = static_cast<std::int64_t>(values.size());
    const auto bytes = static_cast<std::size_t>(cache_row_bytes(type, n));
    GuardedBytes row(bytes, Guard::After);
    GuardedFloats input(values);
    table.store_cache(type, input.data(), n, row.data());
    return {row.data(), row.data() + bytes};
}

TEST(StoreCache, EveryInstructionSetWritesTheBytesOfTheLaw) {
    SplitMix64 random(kSeed);
    for (const Values kind : {Values::Ordinary, Values::Wide, Values::Special}) {
        for (const CacheType type : {CacheType::F32, CacheType::F16, CacheType::Q8_0}) {
            for (std::int64_t n = 1; n <= 320; ++n) {
                if (type == CacheType::Q8_0 && n % 32 != 0) continue;
                const std::vector<float> values = random_values(kind, n, random);
                const std::vector<std::byte> expected = stored(scalar_table(), type, values);
                for (const KernelTable* table : vector_tables()) {
                    ASSERT_EQ(stored(*table, type, values), expected)
                        << table->name << ", type " << static_cast<int>(type) << ", n = " << n;
                }
            }
        }
    }
}

TEST(StoreCache, HalvesAreRoundedToNearestEven) {
    const std::vector<float> values = {1.0f,     65519.0f,        65520.0f,       0x1p-24f,
                                       0x1p-25f, 1.0f + 0x1p-11f, 1.0f + 0x3p-11f};
    const std::vector<std::byte> row = stored(kernels(), CacheType::F16, values);
    const float expected[] = {1.0f, 65504.0f, INFINITY, 0x1p-24f, 0.0f, 1.0f, 1.0f + 0x1p-9f};
    for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(reference::load_cache(CacheType::F16, row.data(), static_cast<std::int64_t>(i)),
                  expected[i]);
    }
}

TEST(StoreCache, Q8IsWithinHalfAStep) {
    SplitMix64 random(kSeed);
    const std::vector<float> values = random_values(Values::Ordinary, 256, random);
    const std::vector<std::byte> row = stored(kernels(), CacheType::Q8_0, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
        // Half a step of 3 / 127, and the scale's rounding to 11 bits.
        EXPECT_NEAR(reference::load_cache(CacheType::Q8_0, row.data(), static_cast<std::int64_t>(i)),
                    values[i], 3.0 / 127 * 0.5 + 3.0 * 0x1p-11);
    }
}

TEST(StoreCache, Q8HoldsZeroAndShowsNan) {
    std::vector<float> values(64, 0.0f);
    values[40] = INFINITY;
    const std::vector<std::byte> row = stored(kernels(), CacheType::Q8_0, values);
    EXPECT_EQ(reference::load_cache(CacheType::Q8_0, row.data(), 0), 0.0f);
    EXPECT_TRUE(std::isnan(reference::load_cache(CacheType::Q8_0, row.data(), 32)));
}

struct DeltaCase {
    DeltaCase(std::int64_t keys, std::int64_t values, Values kind, SplitMix64& random)
        : key_dim(keys),
          value_dim(values),
          state(random_values(kind, keys * values, random)),
          query(random_values(kind, keys, random)),
          key(random_values(kind, keys, random)),
          value(random_values(kind, values, random)),
          log_decay(kind == Values::Ordinary ? -0.3f : random_value(kind, random)) {}

    /// The new state, then the output.
    std::vector<float> run(const KernelTable& table) const {
        GuardedFloats updated(state);
        GuardedFloats q(query);
        GuardedFloats k(key);
        GuardedFloats v(value);
        GuardedFloats out(value_dim);
        table.delta_rule({.state = updated.data(),
                          .query = q.data(),
                          .key = k.data(),
                          .value = v.data(),
                          .log_decay = log_decay,
                          .beta = 0.7f,
                          .scale = 0.25f,
                          .key_dim = key_dim,
                          .value_dim = value_dim,
                          .out = out.data()});
        std::vector<float> result = updated.copy();
        const std::vector<float> output = out.copy();
        result.insert(result.end(), output.begin(), output.end());
        return result;
    }

    std::vector<double> exact() const {
        std::vector<double> updated(state.begin(), state.end());
        std::vector<double> out;
        const auto width = static_cast<std::size_t>(key_dim);
        for (std::size_t row = 0; row < value.size(); ++row) {
            double* s = updated.data() + row * width;
            double read = 0.0;
            for (std::size_t i = 0; i < width; ++i)
                read += (s[i] *= std::exp(static_cast<double>(log_decay))) * key[i];
            const double delta = static_cast<double>(0.7f) * (value[row] - read);
            double sum = 0.0;
            for (std::size_t i = 0; i < width; ++i) sum += (s[i] += delta * key[i]) * query[i];
            out.push_back(sum * 0.25);
        }
        updated.insert(updated.end(), out.begin(), out.end());
        return updated;
    }

    std::int64_t key_dim, value_dim;
    std::vector<float> state, query, key, value;
    float log_decay;
};

TEST(DeltaRule, IsNearTheExactResult) {
    SplitMix64 random(kSeed);
    for (const std::int64_t keys : {1, 31, 32, 33, 64, 100, 128}) {
        const DeltaCase test(keys, 5, Values::Ordinary, random);
        const std::vector<float> result = test.run(scalar_table());
        const std::vector<double> exact = test.exact();
        for (std::size_t i = 0; i < exact.size(); ++i) {
            ASSERT_NEAR(result[i], exact[i], 2e-6 * std::max(100.0, std::fabs(exact[i])))
                << keys << ", value " << i;
        }
    }
}

TEST(DeltaRule, EveryInstructionSetGivesTheBitsOfTheLaw) {
    SplitMix64 random(kSeed);
    for (const Values kind : {Values::Ordinary, Values::Wide, Values::Special}) {
        for (const std::int64_t keys : {1, 7, 8, 9, 31, 32, 33, 40, 64, 100, 128, 256}) {
            const DeltaCase test(keys, 6, kind, random);
            for (const KernelTable* table : vector_tables()) {
                ASSERT_TRUE(same_bits(test.run(scalar_table()), test.run(*table)))
                    << table->name << ", " << keys;
            }
        }
    }
}

TEST(DeltaRule, AnInfiniteDecayGivesTheSameBits) {
    SplitMix64 random(kSeed);
    DeltaCase test(37, 4, Values::Ordinary, random);
    test.log_decay = 100.0f;
    for (const KernelTable* table : vector_tables()) {
        EXPECT_TRUE(same_bits(test.run(scalar_table()), test.run(*table))) << table->name;
    }
}

}  // namespace
}  // namespace coterie::cpu
