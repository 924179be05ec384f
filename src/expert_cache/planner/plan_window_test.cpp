#include "expert_cache/planner/plan_window.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "base/error.h"

namespace coterie::expert_cache {
namespace {

/// 48 layers of 128 experts of 2.9 MB, half of them missing: 8.8 GB to stream in 0.35 s at 25 GB/s. A token
/// takes 0.1 ms to compute.
struct Prompt {
    std::vector<WindowLayer> layers;
    WindowProblem problem;

    explicit Prompt(std::int64_t tokens, double token_seconds = 1e-4)
        : layers(48, {.experts = 128,
                      .experts_used = 8,
                      .missing = 64,
                      .expert_bytes = 2'857'000,
                      .token_seconds = token_seconds / 48}),
          problem{.layers = layers,
                  .stream_bytes_per_second = 25e9,
                  .prompt_tokens = tokens,
                  .context_tokens = 1 << 20,
                  .bytes_per_token = 100'000,
                  .workspace_bytes = std::uint64_t{1} << 40} {}
    Prompt(const Prompt&) = delete;
};

TEST(PlanWindowTest, TheSmallestWindowThatHidesStreaming) {
    Prompt prompt(10 * 3520);
    const WindowPlan plan = plan_window(prompt.problem);
    EXPECT_EQ(plan.limit, WindowLimit::Balance);
    EXPECT_EQ(plan.tokens, 3520);  // 0.351 s / 0.1 ms, on the grid of 64
    EXPECT_GE(plan.compute_seconds, plan.stream_seconds);
    EXPECT_LT(plan.compute_seconds - 64e-4, plan.stream_seconds);
}

TEST(PlanWindowTest, WindowsAreEven) {
    Prompt prompt(10'000);
    const WindowPlan plan = plan_window(prompt.problem);  // two of 5,000 rather than 3,520 three times
    EXPECT_EQ(plan.tokens, 5056);
    prompt.problem.workspace_bytes = 4000 * prompt.problem.bytes_per_token;
    EXPECT_EQ(plan_window(prompt.problem).tokens, 3392);  // three
}

TEST(PlanWindowTest, SlowLinksTakeTheWholePrompt) {
    Prompt prompt(3001);
    const WindowPlan plan = plan_window(prompt.problem);
    EXPECT_EQ(plan.limit, WindowLimit::Prompt);
    EXPECT_EQ(plan.tokens, 3001);
    EXPECT_GT(plan.stream_seconds, plan.compute_seconds);
}

TEST(PlanWindowTest, MemoryAndContextCapTheWindow) {
    Prompt prompt(6000);
    prompt.problem.workspace_bytes = 2100 * prompt.problem.bytes_per_token;
    WindowPlan plan = plan_window(prompt.problem);
    EXPECT_EQ(plan.limit, WindowLimit::Memory);
    EXPECT_EQ(plan.tokens, 2048);
    prompt.problem.context_tokens = 1024;
    EXPECT_EQ(plan_window(prompt.problem).tokens, 1024);
}

TEST(PlanWindowTest, WithNothingToStreamTheGridIsEnough) {
    Prompt prompt(6400);
    for (WindowLayer& layer : prompt.layers) layer.missing = 0;
    const WindowPlan plan = plan_window(prompt.problem);
    EXPECT_EQ(plan.tokens, 64);
    EXPECT_EQ(plan.limit, WindowLimit::Balance);
    EXPECT_EQ(plan.stream_seconds, 0);
}

TEST(PlanWindowTest, AShortPromptIsOneWindow) {
    for (const std::int64_t tokens : {1, 63, 64, 65}) {
        Prompt prompt(tokens);
        EXPECT_EQ(plan_window(prompt.problem).tokens, tokens);
    }
}

TEST(PlanWindowTest, RefusesAWorkspaceThatHoldsNoCellOfTheGrid) {
    Prompt prompt(1000);
    prompt.problem.workspace_bytes = 6'399'999;
    try {
        plan_window(prompt.problem);
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::OutOfMemory);
        EXPECT_THAT(error.what(), testing::HasSubstr("needs 6400000 bytes of workspace, there are 6399999"));
    }
}

/// Every size from the formula, found by trying all of them.
TEST(PlanWindowTest, AgreesWithTryingAll) {
    for (const double token_seconds : {1e-6, 1e-5, 5e-5, 2e-4, 1e-3, 1e-2}) {
        Prompt prompt(64 * 1024, token_seconds);
        const WindowPlan plan = plan_window(prompt.problem);
        std::int64_t hiding = 0;
        for (std::int64_t tokens = 64; tokens <= 64 * 1024 && hiding == 0; tokens += 64) {
            const double share = 1 - std::pow(1 - 8.0 / 128, tokens);
            const double streaming = share * 64 * 48 * 2'857'000 / 25e9;
            if (streaming <= static_cast<double>(tokens) * token_seconds) hiding = tokens;
        }
        if (hiding == 0) hiding = 64 * 1024;
        EXPECT_GE(plan.tokens, hiding);
        EXPECT_LT(plan.tokens, 2 * hiding + 64);
        EXPECT_EQ(plan.tokens == 64 * 1024 && plan.limit == WindowLimit::Prompt, token_seconds < 5e-6);
    }
}

}  // namespace
}  // namespace coterie::expert_cache
