#include "engine/prompt_window.h"

#include <gtest/gtest.h>

namespace coterie::engine {
namespace {

/// Two layers of experts and a dense one; a device twice as fast as the CPU, and one as fast again.
struct Machine {
    PlacementFacts facts;
    expert_cache::Costs costs;
    std::vector<expert_cache::WindowLayer> layers;

    explicit Machine(std::size_t devices) {
        facts.model.layers = {{}, {.experts = 8, .experts_used = 2, .expert_bytes = 1000}};
        facts.model.layers.push_back(facts.model.layers[1]);
        facts.kinds = {{.name = "all", .multiply_adds = 500}};
        facts.dense_multiply_adds = 3000;
        costs.cpu.compute = {{.row_seconds = 5e-6}};
        costs.ram_bytes_per_second = 3e6;
        for (std::size_t d = 0; d < devices; ++d) {
            costs.devices.push_back({.link_bytes_per_second = 2e6, .compute = {{.row_seconds = 2.5e-6}}});
        }
    }
    expert_cache::WindowProblem problem(expert_cache::DensePlace dense) {
        const std::vector<std::int32_t> missing{0, 3, 5};
        return window_problem(
            facts, costs, missing, dense,
            {.prompt_tokens = 100, .most_tokens = 50, .bytes_per_token = 7, .lent_bytes = 9}, layers);
    }
};

TEST(PromptWindowTest, DevicesShareTheExpertsAndRamServesTheLinks) {
    Machine one(1);
    expert_cache::WindowProblem problem = one.problem(expert_cache::DensePlace::Cpu);
    EXPECT_EQ(problem.stream_bytes_per_second, 2e6);
    ASSERT_EQ(problem.layers.size(), 3u);
    EXPECT_EQ(problem.layers[0].missing, 0);
    EXPECT_EQ(problem.layers[2].missing, 5);
    // A multiply-add takes the CPU 10 ns; 1,000 of the rest in each layer, 2 experts on the device.
    EXPECT_NEAR(problem.layers[0].token_seconds, 1e-5, 1e-12);
    EXPECT_NEAR(problem.layers[1].token_seconds, 1e-5 + 2 * 2.5e-6, 1e-12);
    EXPECT_EQ(problem.prompt_tokens, 100);
    EXPECT_EQ(problem.context_tokens, 50);

    Machine two(2);
    problem = two.problem(expert_cache::DensePlace::Devices);
    EXPECT_EQ(problem.stream_bytes_per_second, 3e6);
    EXPECT_NEAR(problem.layers[1].token_seconds, 0.5e-5 + 2 * 1.25e-6, 1e-12);
}

TEST(PromptWindowTest, ThePoorestDeviceThatTakesPartDecides) {
    EXPECT_EQ(lendable_bytes(std::vector<std::uint64_t>{1000, 400}, 50, 100), 150u);
    EXPECT_EQ(lendable_bytes(std::vector<std::uint64_t>{1000, 200}, 50, 100), 450u);
    EXPECT_EQ(lendable_bytes(std::vector<std::uint64_t>{90, 200}, 50, 100), std::nullopt);
    EXPECT_EQ(lendable_bytes(std::vector<std::uint64_t>{}, 50, 100), std::nullopt);
}

TEST(PromptWindowTest, SpareSlotsHoldNobody) {
    const Machine machine(1);
    expert_cache::Placement placement;
    placement.devices.resize(2);
    placement.devices[0].slots = {0, 4, 8};
    placement.devices[1].slots = {0, 1, 0};
    EXPECT_EQ(missing_experts(machine.facts, placement, 1), (std::vector<std::int32_t>{0, 4, 0}));
}

}  // namespace
}  // namespace coterie::engine
