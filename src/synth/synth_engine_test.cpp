#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "synth/synth.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary/load_vocabulary.h"

namespace coterie::synth {
namespace {

/// A synthetic model in memory, loaded.
struct Loaded {
    explicit Loaded(const Options& options)
        : bytes(make_bytes(options, 2)),
          engine(std::make_shared<const gguf::Archive>(gguf::Archive::from_bytes(bytes, options.shape)),
                 small_engine()) {}

    static engine::EngineOptions small_engine() {
        engine::EngineOptions options;
        options.threads = 2;
        options.context = 2048;
        options.batch = 128;
        return options;
    }

    std::vector<std::byte> bytes;
    engine::Engine engine;
};

std::vector<std::int32_t> random_tokens(std::int64_t vocabulary, std::size_t count, std::uint64_t seed) {
    SplitMix64 random(seed);
    std::vector<std::int32_t> tokens(count);
    for (auto& token : tokens) {
        token = static_cast<std::int32_t>(random.next() % static_cast<std::uint64_t>(vocabulary));
    }
    return tokens;
}

/// Counts each layer's choices and keeps the last residual rows' size.
struct RoutingCounter : engine::StepObserver {
    std::vector<std::vector<std::int64_t>> counts;  ///< [layer][expert]
    double largest_residual_rms = 0.0;

    void routed(int layer, std::int64_t, std::span<const std::int32_t> experts,
                std::span<const float>) override {
        const auto index = static_cast<std::size_t>(layer);
        if (counts.size() <= index) counts.resize(index + 1);
        for (const std::int32_t e : experts) {
            if (counts[index].size() <= static_cast<std::size_t>(e)) {
                counts[index].resize(static_cast<std::size_t>(e) + 1);
            }
            ++counts[index][static_cast<std::size_t>(e)];
        }
    }
    void layer_done(int, const float* residual, std::int64_t rows, std::int64_t stride) override {
        for (std::int64_t r = 0; r < rows; ++r) {
            double sum = 0.0;
            for (std::int64_t i = 0; i < 768; ++i) {
                const double value = residual[r * stride + i];
                sum += value * value;
            }
            largest_residual_rms = std::max(largest_residual_rms, std::sqrt(sum / 768.0));
        }
    }
};

void run_tokens(engine::Engine& engine, std::span<const std::int32_t> tokens, RoutingCounter& counter,
                double& logits_rms) {
    engine::Sequence sequence = engine.make_sequence();
    for (std::size_t at = 0; at < tokens.size(); at += 128) {
        const auto part = tokens.subspan(at, std::min<std::size_t>(128, tokens.size() - at));
        const engine::Slice slice{&sequence, part, engine::Slice::Logits::Last};
        const auto measure = [&](std::int64_t, std::span<const float> logits) {
            double sum = 0.0;
            for (const float logit : logits) sum += static_cast<double>(logit) * logit;
            logits_rms = std::sqrt(sum / static_cast<double>(logits.size()));
        };
        engine.step(std::span(&slice, 1), measure, &counter);
    }
}

struct Case {
    const char* shape;
    const char* quant;
};

class SyntheticModel : public testing::TestWithParam<Case> {};

TEST_P(SyntheticModel, RunsWithResidualsAndLogitsOfUnitOrder) {
    Options options;
    options.shape = GetParam().shape;
    options.layers = 2;
    options.quant = GetParam().quant;
    Loaded model(options);
    RoutingCounter counter;
    double logits_rms = 0.0;
    run_tokens(model.engine, random_tokens(1024, 8, 1), counter, logits_rms);
    EXPECT_GT(logits_rms, 0.5);
    EXPECT_LT(logits_rms, 2.0);
    EXPECT_LT(counter.largest_residual_rms, 1.25);  // the embedding's is 1
}

INSTANTIATE_TEST_SUITE_P(Architectures, SyntheticModel,
                         testing::Values(Case{"tiny-qwen3moe", "q4_k_m"}, Case{"tiny-glm4moe", "q4_k_m"},
                                         Case{"tiny-olmoe", "q5_k_m"}, Case{"tiny-mixtral", "q3_k_m"},
                                         Case{"tiny-gpt-oss", "mxfp4"}, Case{"tiny-qwen3moe", "f32"},
                                         Case{"tiny-qwen3moe", "bf16"}, Case{"tiny-qwen3moe", "q8_0"},
                                         Case{"tiny-qwen3moe", "iq4_xs"}, Case{"tiny-qwen3moe", "iq3_xxs"},
                                         Case{"tiny-qwen3moe", "iq2_xs"}, Case{"tiny-qwen3moe", "iq1_s"},
                                         Case{"tiny-qwen3moe", "pure-iq1_m"},
                                         Case{"tiny-qwen3moe", "pure-nvfp4"},
                                         Case{"tiny-qwen3moe", "pure-mxfp4"}, Case{"tiny-qwen3moe", "tq1_0"},
                                         Case{"tiny-qwen3moe", "q2_k"}));

/// The shares of a layer's experts, sorted from the most used.
std::vector<double> sorted_shares(const std::vector<std::int64_t>& counts, std::size_t experts,
                                  double tokens) {
    std::vector<double> shares(experts);
    for (std::size_t e = 0; e < counts.size(); ++e) shares[e] = static_cast<double>(counts[e]) / tokens;
    std::sort(shares.begin(), shares.end(), std::greater<>());
    return shares;
}

class SkewedModel : public testing::TestWithParam<std::pair<const char*, double>> {};

TEST_P(SkewedModel, RoutersChooseAsThePowerLawSays) {
    Options options;
    options.shape = GetParam().first;
    options.skew = GetParam().second;
    options.quant = options.shape == "tiny-gpt-oss" ? "mxfp4" : "q4_k_m";
    Loaded model(options);
    RoutingCounter counter;
    double logits_rms = 0.0;
    const std::vector<std::int32_t> tokens = random_tokens(1024, 1536, 2);
    run_tokens(model.engine, tokens, counter, logits_rms);

    const Shape& shape = find_shape(options.shape);
    const auto experts = static_cast<std::size_t>(shape.experts);
    const auto wanted = power_law_popularity(shape.experts, shape.experts_used, options.skew);
    std::vector<std::size_t> favourites;
    for (std::size_t layer = static_cast<std::size_t>(shape.leading_dense); layer < 3; ++layer) {
        const auto shares = sorted_shares(counter.counts[layer], experts, static_cast<double>(tokens.size()));
        double difference = 0.0;
        for (std::size_t r = 0; r < experts; ++r) difference += std::abs(shares[r] - wanted[r]);
        // Half of the sum is the share of choices that went elsewhere than the law says.
        EXPECT_LT(0.5 * difference / static_cast<double>(shape.experts_used), 0.05) << "layer " << layer;
        const auto& counts = counter.counts[layer];
        favourites.push_back(
            static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin()));
    }
    if (experts > 8) {
        EXPECT_NE(favourites.front(), favourites.back()) << "layers share their order";
    }
}

INSTANTIATE_TEST_SUITE_P(Exponents, SkewedModel,
                         testing::Values(std::pair{"tiny-qwen3moe", 0.5}, std::pair{"tiny-qwen3moe", 1.0},
                                         std::pair{"tiny-qwen3moe", 1.5}, std::pair{"tiny-glm4moe", 1.0},
                                         std::pair{"tiny-olmoe", 1.0}, std::pair{"tiny-mixtral", 0.8},
                                         std::pair{"tiny-gpt-oss", 1.0}));

TEST(SyntheticTopics, TokensOfOneTopicShareExperts) {
    Options options;
    options.shape = "tiny-qwen3moe";
    options.skew = 0.0;
    options.topics = 8;
    options.topic_strength = 2.0;
    Loaded model(options);
    std::vector<std::int32_t> mixed = random_tokens(1024, 512, 3);
    std::vector<std::int32_t> of_topic = mixed;
    for (auto& token : of_topic) token -= token % 8;  // topic 0
    const auto share_of_best_eight = [&](std::span<const std::int32_t> tokens) {
        RoutingCounter counter;
        double logits_rms = 0.0;
        run_tokens(model.engine, tokens, counter, logits_rms);
        const auto shares = sorted_shares(counter.counts[1], 32, static_cast<double>(tokens.size()));
        double sum = 0.0;
        for (std::size_t i = 0; i < 8; ++i) sum += shares[i];
        return sum / 4.0;
    };
    EXPECT_LT(share_of_best_eight(mixed), 0.35);
    EXPECT_GT(share_of_best_eight(of_topic), 0.6);
}

TEST(SyntheticVocabulary, TextRoundTripsAndAWordIsOneToken) {
    Options options;
    options.shape = "tiny-qwen3moe";
    options.layers = 1;
    const auto bytes = make_bytes(options, 1);
    const auto archive = gguf::Archive::from_bytes(bytes, "synthetic");
    const Tokenizer tokenizer(load_vocabulary(archive.metadata()));
    const std::string text = "Volcano \xc3\xbc\xe2\x82\xac 12\n\tend";
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, {})), text);
    EXPECT_EQ(tokenizer.encode(" ba", {}).size(), 1u);
    EXPECT_EQ(tokenizer.encode(" babi", {}).size(), 1u);
}

}  // namespace
}  // namespace coterie::synth
