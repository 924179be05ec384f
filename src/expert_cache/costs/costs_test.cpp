#include "expert_cache/costs/costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "base/error.h"
#include "expert_cache/costs/cost_averages.h"
#include "expert_cache/costs/costs_json.h"

namespace coterie::expert_cache {
namespace {

using ::testing::HasSubstr;

Costs two_kinds() {
    const std::vector<ComputeCosts> compute{{1e-6, 2e-6}, {0, 3e-6}};
    return {.kinds = {"Q4_K", "Q6_K"},
            .cpu = {.read_bytes_per_second = 40e9, .handoff_seconds = 1e-5, .compute = compute},
            .devices = {{.link_bytes_per_second = 24e9,
                         .contended_link_bytes_per_second = 18e9,
                         .copy_seconds = 5e-6,
                         .memory_bytes_per_second = 900e9,
                         .handoff_seconds = 2e-5,
                         .compute = compute}},
            .ram_bytes_per_second = 44e9};
}

std::string refusal_of(const Costs& costs) {
    try {
        check_costs(costs, "the test");
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
        return error.what();
    }
    return "";
}

TEST(CostsTest, AnExpertTakesTheSlowerOfReadingAndComputing) {
    const Costs costs = two_kinds();
    EXPECT_DOUBLE_EQ(cpu_expert_seconds(costs, 0, 4'000'000, 1), 1e-6 + 1e-4);
    EXPECT_DOUBLE_EQ(cpu_expert_seconds(costs, 0, 4'000'000, 100), 1e-6 + 2e-4);
    EXPECT_DOUBLE_EQ(device_expert_seconds(costs, 0, 1, 9'000'000, 1), 1e-5);
}

TEST(CostsTest, NamesTheFieldThatCannotBe) {
    EXPECT_EQ(refusal_of(two_kinds()), "");
    Costs costs = two_kinds();
    costs.devices[0].contended_link_bytes_per_second = 0;
    EXPECT_THAT(refusal_of(costs), HasSubstr("the test: devices[0].contended_link_bytes_per_second is 0"));
    costs = two_kinds();
    costs.cpu.handoff_seconds = -1;
    EXPECT_THAT(refusal_of(costs), HasSubstr("cpu.handoff_seconds is -1"));
    costs = two_kinds();
    costs.ram_bytes_per_second = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THAT(refusal_of(costs), HasSubstr("ram_bytes_per_second is nan"));
    costs = two_kinds();
    costs.devices[0].compute.pop_back();
    EXPECT_THAT(refusal_of(costs), HasSubstr("devices[0].compute has 1 entries"));
    costs = two_kinds();
    costs.cpu.compute[1].row_seconds = std::numeric_limits<double>::infinity();
    EXPECT_THAT(refusal_of(costs), HasSubstr("cpu.compute[1].row_seconds is inf"));
    EXPECT_THAT(refusal_of(Costs{}), HasSubstr("kinds is empty"));
}

TEST(CostsTest, JsonGivesTheSameNumbersBack) {
    Costs costs = two_kinds();
    costs.cpu.handoff_seconds = 1.0 / 3;
    const std::string text = costs_to_json(costs);
    const Costs again = costs_from_json(text, "text");
    EXPECT_EQ(again.kinds, costs.kinds);
    EXPECT_EQ(again.cpu.handoff_seconds, costs.cpu.handoff_seconds);
    EXPECT_EQ(again.devices.at(0).contended_link_bytes_per_second, 18e9);
    EXPECT_EQ(costs_to_json(again), text);
}

TEST(CostsTest, BadJsonIsRefusedByName) {
    for (const char* text : {"", "{", "[]", R"({"kinds": 3})"}) {
        try {
            costs_from_json(text, "costs.json");
            ADD_FAILURE() << text;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
            EXPECT_THAT(error.what(), HasSubstr("costs.json: "));
        }
    }
}

TEST(CostAveragesTest, ARateReachesTheTruthFromEitherSide) {
    for (const double truth : {6e9, 60e9}) {
        Costs costs = two_kinds();
        CostAverages averages(costs);
        for (int i = 0; i < 400; ++i) averages.copied(0, 3'000'000, 5e-6 + 3e6 / truth, RamUse::Contended);
        EXPECT_NEAR(costs.devices[0].contended_link_bytes_per_second / truth, 1, 0.01);
        EXPECT_EQ(costs.devices[0].link_bytes_per_second, 24e9);
        EXPECT_EQ(costs.devices[0].copy_seconds, 5e-6);
    }
}

TEST(CostAveragesTest, ShortCopiesTeachTheLatency) {
    Costs costs = two_kinds();
    CostAverages averages(costs);
    for (int i = 0; i < 400; ++i) averages.copied(0, 1000, 9e-6, RamUse::Alone);
    EXPECT_NEAR(costs.devices[0].copy_seconds, 9e-6, 1e-7);
    EXPECT_EQ(costs.devices[0].link_bytes_per_second, 24e9);
}

TEST(CostAveragesTest, FewRowsTeachTheReadRateAndManyTheRowTime) {
    Costs costs = two_kinds();
    CostAverages averages(costs);
    for (int i = 0; i < 400; ++i) averages.cpu_computed(1, 2, 2, 6'000'000, 6e6 / 30e9);
    EXPECT_NEAR(costs.cpu.read_bytes_per_second, 30e9, 0.3e9);
    EXPECT_EQ(costs.cpu.compute[1].row_seconds, 3e-6);
    for (int i = 0; i < 400; ++i) averages.cpu_computed(1, 1, 500, 3'000'000, 500 * 5e-6);
    EXPECT_NEAR(costs.cpu.compute[1].row_seconds, 5e-6, 1e-7);
    EXPECT_EQ(costs.cpu.compute[0].row_seconds, 2e-6);
    for (int i = 0; i < 400; ++i) averages.device_computed(0, 1, 1, 1, 3'000'000, 3e6 / 700e9);
    EXPECT_NEAR(costs.devices[0].memory_bytes_per_second, 700e9, 7e9);
}

TEST(CostAveragesTest, OneOutlierMovesLittleAndNothingLeavesTheValidRange) {
    Costs costs = two_kinds();
    CostAverages averages(costs);
    averages.copied(0, 3'000'000, 3.0, RamUse::Alone);
    EXPECT_GT(costs.devices[0].link_bytes_per_second, 24e9 * 0.9);
    averages.cpu_handed_off(1.0);
    EXPECT_LT(costs.cpu.handoff_seconds, 1.1e-5);
    for (int i = 0; i < 2000; ++i) {
        averages.copied(0, 1, 0, RamUse::Alone);
        averages.copied(0, 3'000'000, 0, RamUse::Alone);
        averages.cpu_computed(0, 1, 1, 1, 0);
        averages.cpu_computed(0, 1, 1, 3'000'000, -1);
        averages.device_handed_off(0, 0);
    }
    EXPECT_EQ(refusal_of(costs), "");
}

}  // namespace
}  // namespace coterie::expert_cache
