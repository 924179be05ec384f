#include "engine/placement_facts.h"

#include <gtest/gtest.h>

#include "gguf/archive.h"
#include "gguf/expert_summary.h"
#include "models/registry.h"
#include "models/token_cost.h"

namespace coterie::engine {
namespace {

/// The demo model: one dense layer and six with 64 experts.
struct Demo {
    gguf::Archive archive = gguf::Archive::open(COTERIE_SOURCE_DIR "/models/demo-dictionary-29m-q5_k_s.gguf");
    std::unique_ptr<models::Model> model = models::build_model(archive);
    PlacementFacts facts = placement_facts(*model, {.cache = {}, .batch = 512, .snapshots = 8});
};

TEST(PlacementFactsTest, ExpertsAreThoseOfTheFile) {
    const Demo demo;
    const auto summary = gguf::summarise_experts(demo.archive);
    ASSERT_EQ(demo.facts.model.layers.size(), 7U);
    for (std::size_t i = 0; i < 7; ++i) {
        const expert_cache::LayerFacts& layer = demo.facts.model.layers[i];
        const auto found = summary.find(static_cast<std::int64_t>(i));
        if (found == summary.end()) {
            EXPECT_EQ(layer.experts, 0);
            continue;
        }
        EXPECT_EQ(layer.experts, found->second.experts);
        EXPECT_EQ(layer.experts_used, demo.model->config.experts_used);
        EXPECT_EQ(layer.expert_bytes, found->second.bytes_per_expert);
        ASSERT_LT(static_cast<std::size_t>(layer.kind), demo.facts.kinds.size());
        EXPECT_GT(demo.facts.kinds[static_cast<std::size_t>(layer.kind)].multiply_adds, 0);
    }
}

TEST(PlacementFactsTest, WhatATokenReadsIsAllThere) {
    const Demo demo;
    const models::TokenCost cost = models::token_cost(*demo.model);
    std::uint64_t dense = 0;
    std::uint64_t experts = 0;
    for (const expert_cache::LayerFacts& layer : demo.facts.model.layers) {
        dense += layer.dense_bytes;
        experts += layer.expert_bytes * static_cast<std::uint64_t>(layer.experts_used);
    }
    EXPECT_EQ(dense, static_cast<std::uint64_t>(cost.dense_bytes));
    EXPECT_EQ(experts, static_cast<std::uint64_t>(cost.expert_bytes));
    EXPECT_EQ(demo.facts.model.output_bytes, static_cast<std::uint64_t>(cost.output_bytes));
}

TEST(PlacementFactsTest, StateGrowsAsTheCacheDoes) {
    const Demo demo;
    std::uint64_t bytes = 0;
    for (const expert_cache::LayerFacts& layer : demo.facts.model.layers) bytes += layer.kv_bytes_per_token;
    EXPECT_EQ(bytes, demo.model->state_layout({}).token_bytes());
}

}  // namespace
}  // namespace coterie::engine
