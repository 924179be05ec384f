#include "quant/random_blocks.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace coterie {
namespace {

struct Sample {
    std::vector<std::byte> bytes;
    std::vector<float> values;
};

Sample make_sample(const DataTypeTraits& type, float rms, std::uint64_t seed) {
    constexpr std::int64_t kValues = 256 * 1024;
    const std::int64_t blocks = kValues / type.block_values;
    Sample sample;
    sample.bytes.resize(static_cast<std::size_t>(blocks * type.block_bytes));
    sample.values.resize(kValues);
    SplitMix64 random(seed);
    RandomBlocks(type.type, rms).fill(random, blocks, sample.bytes.data());
    type.decode(sample.bytes.data(), kValues, sample.values.data());
    return sample;
}

// The bounds are several standard deviations of both samples: some types have few, widely spread scales.
TEST(RandomBlocks, HaveTheWishedSizeAndNoMean) {
    for (const DataTypeTraits& type : all_data_types()) {
        if (type.dot == nullptr) continue;
        for (const float rms : {0.02f, 1.0f}) {
            const Sample sample = make_sample(type, rms, 7);
            double sum = 0.0;
            double squares = 0.0;
            for (const float value : sample.values) {
                ASSERT_TRUE(std::isfinite(value)) << type.name;
                sum += value;
                squares += static_cast<double>(value) * value;
            }
            const auto count = static_cast<double>(sample.values.size());
            EXPECT_NEAR(std::sqrt(squares / count) / rms, 1.0, 0.05) << type.name << " rms " << rms;
            EXPECT_NEAR(sum / count / rms, 0.0, 0.04) << type.name << " rms " << rms;
        }
    }
}

TEST(RandomBlocks, RepeatWithTheSeed) {
    const DataTypeTraits& type = traits(DataType::Q4_K);
    EXPECT_EQ(make_sample(type, 0.02f, 7).bytes, make_sample(type, 0.02f, 7).bytes);
    EXPECT_NE(make_sample(type, 0.02f, 7).bytes, make_sample(type, 0.02f, 8).bytes);
}

}  // namespace
}  // namespace coterie
