#include "scheduler/step/step_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

namespace coterie::scheduler {
namespace {

using testing::ElementsAre;
constexpr StepLimits kLimits{.batch = 512, .prompt_chunk = 64};

TEST(PlanStep, GivesALonePromptTheWholeStep) {
    EXPECT_THAT(plan_step(std::vector<Work>{{0, 2000, false}}, kLimits, 0),
                ElementsAre(PlannedSlice{0, 512}));
    EXPECT_THAT(plan_step(std::vector<Work>{{3, 17, false}}, kLimits, 0), ElementsAre(PlannedSlice{3, 17}));
}

TEST(PlanStep, NeverMakesAnswersWaitForMoreThanAChunkOfAPrompt) {
    const std::vector<Work> work = {{0, 4000, false}, {1, 1, true}, {2, 1, true}};
    EXPECT_THAT(plan_step(work, kLimits, 0),
                ElementsAre(PlannedSlice{1, 1}, PlannedSlice{2, 1}, PlannedSlice{0, 64}));
}

TEST(PlanStep, SharesAStepAmongPromptsAndGivesTheRestToTheFirst) {
    const std::vector<Work> work = {{0, 4000, false}, {1, 10, false}, {2, 4000, false}};
    EXPECT_THAT(plan_step(work, {.batch = 300, .prompt_chunk = 64}, 0),
                ElementsAre(PlannedSlice{0, 190}, PlannedSlice{1, 10}, PlannedSlice{2, 100}));
}

TEST(PlanStep, EndsPartsOfPromptsOnTheGrid) {
    const StepLimits limits{.batch = 512, .prompt_chunk = 20, .grid = 64};
    EXPECT_THAT(plan_step(std::vector<Work>{{0, 2000, false, 37}}, limits, 0),
                ElementsAre(PlannedSlice{0, 512 - 37}));
    EXPECT_THAT(plan_step(std::vector<Work>{{0, 100, false, 37}}, limits, 0),
                ElementsAre(PlannedSlice{0, 100}));
    const std::vector<Work> beside = {{0, 2000, false, 60}, {1, 1, true}};
    EXPECT_THAT(plan_step(beside, limits, 0), ElementsAre(PlannedSlice{1, 1}, PlannedSlice{0, 4}));
    const std::vector<Work> whole = {{0, 2000, false, 64}, {1, 1, true}};
    EXPECT_THAT(plan_step(whole, limits, 0), ElementsAre(PlannedSlice{1, 1}, PlannedSlice{0, 64}));
    const std::vector<Work> many = {{0, 500, false}, {1, 500, false}, {2, 500, false}};
    EXPECT_THAT(plan_step(many, {.batch = 150, .prompt_chunk = 20, .grid = 64}, 0),
                ElementsAre(PlannedSlice{0, 64}, PlannedSlice{1, 64}));
}

TEST(PlanStep, PromptsEndForAnyGridAndBatch) {
    for (std::int64_t batch : {1, 5, 64, 100, 257}) {
        std::vector<Work> work = {{0, 300, false, 11}, {1, 70, false, 64}, {2, 129, false, 0}};
        for (int step = 0; !work.empty(); ++step) {
            ASSERT_LT(step, 600);
            for (const PlannedSlice& slice :
                 plan_step(work, {.batch = batch, .prompt_chunk = 3, .grid = 64}, 0)) {
                for (Work& one : work) {
                    if (one.slot != slice.slot) continue;
                    one.tokens -= slice.tokens;
                    one.position += slice.tokens;
                    EXPECT_TRUE(batch < 64 || one.tokens == 0 || one.position % 64 == 0);
                }
            }
            std::erase_if(work, [](const Work& one) { return one.tokens == 0; });
        }
    }
}

TEST(PlanStep, LetsEveryAnswerHaveItsTurnWhereAStepIsTooSmall) {
    const std::vector<Work> work = {{0, 1, true}, {1, 1, true}, {2, 1, true}};
    std::set<int> served;
    for (std::uint64_t turn = 0; turn < 3; ++turn) {
        const auto plan = plan_step(work, {.batch = 1, .prompt_chunk = 1}, turn);
        ASSERT_EQ(plan.size(), 1u);
        served.insert(plan[0].slot);
    }
    EXPECT_EQ(served.size(), 3u);
}

TEST(PlanStep, StaysWithinTheBatchForAnyMixture) {
    for (std::int64_t batch = 1; batch < 20; ++batch) {
        for (std::int64_t prompts = 0; prompts < 5; ++prompts) {
            for (std::int64_t answers = 0; answers < 5; ++answers) {
                std::vector<Work> work;
                for (int i = 0; i < prompts; ++i) work.push_back({i, 3 * i + 1, false});
                for (int i = 0; i < answers; ++i) work.push_back({10 + i, 1, true});
                std::int64_t total = 0;
                for (const PlannedSlice& slice : plan_step(work, {batch, 5}, 7)) {
                    EXPECT_GT(slice.tokens, 0);
                    total += slice.tokens;
                }
                EXPECT_LE(total, batch);
                EXPECT_EQ(total > 0, !work.empty());
            }
        }
    }
}

}  // namespace
}  // namespace coterie::scheduler
