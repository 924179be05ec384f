#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "golden_case.h"
#include "models/registry.h"

namespace coterie::golden {
namespace {

/// Cases whose architecture comes with a later change. The list shrinks; nothing else is ever left out.
const std::set<std::string> kNotYetSupported = {
    "qwen35-f16",        "qwen35-q5_k_s",   "qwen35moe-f16",  "qwen35moe-q3_k_m",
    "mimo2-bf16",        "mimo2-iq3",       "minimax-m2-f16", "minimax-m2-iq1",
    "ernie4_5-moe-bf16", "ernie4_5-moe-tq", "glm-dsa-f16",    "deepseek32-f16",
};

std::vector<Case> supported_cases() {
    std::vector<Case> cases = read_cases(directory());
    std::erase_if(cases, [](const Case& c) { return kNotYetSupported.contains(c.id); });
    return cases;
}

class GoldenTest : public testing::TestWithParam<Case> {};

/// Logits of all positions, computed in steps of `batch` tokens with an F32 cache.
std::vector<float> compute(const Case& c, std::int64_t batch) {
    engine::EngineOptions options;
    options.threads = 2;
    options.batch = batch;
    options.cache = {cpu::CacheType::F32, cpu::CacheType::F32};
    auto archive = std::make_shared<gguf::Archive>(gguf::Archive::open(c.model));
    engine::Engine engine(std::move(archive), options);
    engine::Sequence sequence = engine.make_sequence();
    std::vector<float> logits;
    const std::span<const std::int32_t> tokens = c.tokens;
    for (std::size_t done = 0; done < tokens.size(); done += static_cast<std::size_t>(batch)) {
        const auto count = std::min(static_cast<std::size_t>(batch), tokens.size() - done);
        const engine::Slice slice{&sequence, tokens.subspan(done, count), engine::Slice::Logits::All};
        engine.step({&slice, 1}, [&](std::int64_t, std::span<const float> row) {
            logits.insert(logits.end(), row.begin(), row.end());
        });
    }
    return logits;
}

TEST_P(GoldenTest, AgreesWithTheIndependentEngine) {
    const Case& c = GetParam();
    ASSERT_TRUE(std::filesystem::exists(c.model)) << c.model << " is listed in the manifest and missing";
    const std::vector<float> exact = read_floats(c.logits);
    const std::vector<float> logits = compute(c, static_cast<std::int64_t>(c.tokens.size()));
    ASSERT_EQ(logits.size(), exact.size());
    const double nmse = normalised_mean_squared_error(logits, exact);
    RecordProperty("nmse", std::to_string(nmse));
    std::printf("    %-24s nmse %.2e, bound %.2e\n", c.id.c_str(), nmse, c.bound_nmse);
    EXPECT_LE(nmse, c.bound_nmse);

    for (std::size_t t = 0; t < c.tokens.size(); ++t) {
        if (c.top1_margin[t] <= c.top1_must_agree_above) continue;
        const auto* row = logits.data() + t * static_cast<std::size_t>(c.vocabulary);
        EXPECT_EQ(std::max_element(row, row + c.vocabulary) - row, c.top1[t]) << "position " << t;
    }
}

TEST_P(GoldenTest, IsTheSameBitsInAnyChunks) {
    const Case& c = GetParam();
    const std::vector<float> whole = compute(c, static_cast<std::int64_t>(c.tokens.size()));
    EXPECT_EQ(compute(c, 1), whole) << "token by token";
    EXPECT_EQ(compute(c, 7), whole) << "in chunks of 7";
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenTest, testing::ValuesIn(supported_cases()), [](const auto& named) {
    std::string name = named.param.id;
    std::replace_if(
        name.begin(), name.end(), [](char x) { return !std::isalnum(static_cast<unsigned char>(x)); }, '_');
    return name;
});

TEST(GoldenSet, EveryCaseIsEitherSupportedOrListed) {
    for (const Case& c : read_cases(directory())) {
        const bool supported =
            (", " + models::supported_architectures() + ",").find(", " + c.architecture + ",") !=
            std::string::npos;
        EXPECT_EQ(supported, !kNotYetSupported.contains(c.id)) << c.id;
    }
}

}  // namespace
}  // namespace coterie::golden
