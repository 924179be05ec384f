#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "cli/replay/cost_flags.h"
#include "cli/replay/line_chart.h"
#include "cli/replay/report.h"
#include "cli/replay/slot_list.h"

namespace coterie::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ReplayReport report() {
    ReplayReport result{
        .trace = "a.trace",
        .header = {.model_hash = 0xabc, .experts = 8, .used = 2, .layers = {{1, 1024}, {2, 3072}}},
        .tokens = 10,
        .costs = {},
        .results = {}};
    result.results.push_back({.policy = "admit",
                              .slots = 2,
                              .tokens = 10,
                              .uses = 40,
                              .hits = 30,
                              .uploads = 5,
                              .seconds = 0.02,
                              .upload_bytes = 5e6});
    result.results.push_back(
        {.policy = "belady", .slots = 2, .tokens = 10, .uses = 40, .hits = 36, .seconds = 0.01});
    return result;
}

template <typename Action>
std::string refusal(Action action) {
    try {
        action();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
        return error.what();
    }
    return "";
}

TEST(ReplayReportTest, TableSaysWhatWasReplayedAndWhatCameOfIt) {
    const std::string text = render(report(), ReplayFormat::Table);
    EXPECT_THAT(text, HasSubstr("a.trace: 10 tokens, 2 layers of 8 experts of 2.0 KiB, 2 used"));
    EXPECT_THAT(text, HasSubstr("link 24 GB/s, RAM 42 GB/s, VRAM 936 GB/s, hand-off 15 us"));
    EXPECT_THAT(text,
                HasSubstr("|     2 |     25.0 % | admit  | 75.0 % |    2.000 |          0.50 |    0.500 |"));
}

TEST(ReplayReportTest, CsvHasALinePerResult) {
    const std::string text = render(report(), ReplayFormat::Csv);
    EXPECT_THAT(text, HasSubstr("\n2,25.00,admit,0.750000,2.000000,0.5000,0.500000\n"));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(ReplayReportTest, JsonHoldsAllOfIt) {
    const auto json = nlohmann::json::parse(render(report(), ReplayFormat::Json));
    EXPECT_EQ(json.at("model_hash"), "0000000000000abc");
    EXPECT_EQ(json.at("layers").at(1).at("expert_bytes"), 3072);
    EXPECT_DOUBLE_EQ(json.at("costs").at("handoff_us"), 15.0);
    EXPECT_EQ(json.at("results").at(1).at("policy"), "belady");
    EXPECT_EQ(json.at("results").at(1).at("hits"), 36);
}

TEST(ReplayReportTest, RefusesOtherFormats) {
    EXPECT_THAT(refusal([] { replay_format("md"); }), HasSubstr("table, csv and json"));
}

TEST(ReplayReportTest, PlotHasALineForEachPolicyInBothCharts) {
    const std::string svg = render_plot(report());
    const auto count = [&](const std::string& text) {
        std::size_t found = 0;
        for (std::size_t at = 0; (at = svg.find(text, at)) != std::string::npos; ++at) ++found;
        return found;
    };
    EXPECT_EQ(count("<polyline "), 4u);
    EXPECT_EQ(count(">belady</text>"), 2u);
    EXPECT_EQ(count("<g "), count("</g>"));
    EXPECT_THAT(svg, ::testing::StartsWith("<svg "));
    EXPECT_THAT(svg, ::testing::EndsWith("</svg>\n"));
}

TEST(LineChartTest, PlacesPointsBetweenTheAxesAndEscapesTexts) {
    const LineChart chart{.title = "a < b & c",
                          .x_label = "x",
                          .y_label = "y",
                          .lines = {{.name = "one", .points = {{0, 0}, {10, 10}}}}};
    const std::string svg = render_svg({&chart, 1});
    EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c"));
    EXPECT_THAT(svg, HasSubstr("points=\"70.0,345.0 440.0,45.0 \""));  // the corners of the axes
}

TEST(LineChartTest, TicksAreRoundAndReachTheHighest) {
    EXPECT_THAT(axis_ticks(100), ElementsAre(0, 20, 40, 60, 80, 100));
    EXPECT_THAT(axis_ticks(7.2), ElementsAre(0, 2, 4, 6, 8));
    EXPECT_EQ(axis_ticks(0.034).back(), 0.04);
    EXPECT_EQ(axis_ticks(0).front(), 0);
    EXPECT_GE(axis_ticks(0).back(), 1);
    for (double highest = 1e-6; highest < 1e6; highest *= 1.37) {
        EXPECT_GE(axis_ticks(highest).back(), highest * (1 - 1e-8));
        EXPECT_LE(axis_ticks(highest).size(), 8u) << highest;
    }
}

TEST(SlotListTest, TakesNumbersAndShares) {
    EXPECT_THAT(parse_slots({"50%", "3", "25%", "16", "100%", "12.5%"}, 64), ElementsAre(3, 8, 16, 32, 64));
    EXPECT_THAT(parse_slots({"1%"}, 8), ElementsAre(1));
}

TEST(SlotListTest, RefusesWhatIsNoNumberOfSlots) {
    for (const char* text : {"", "x", "0", "65", "-3", "5 ", "0%", "101%", "nan%", "%", "1e3"}) {
        EXPECT_THAT(refusal([&] { parse_slots({text}, 64); }), HasSubstr("--slots")) << text;
    }
}

TEST(CostFlagsTest, TurnsUnitsIntoSiAndRefusesTheImpossible) {
    EXPECT_DOUBLE_EQ(checked_costs({}).link_rate, 24e9);
    EXPECT_DOUBLE_EQ(checked_costs({}).handoff, 15e-6);
    EXPECT_THAT(refusal([] { checked_costs({.link = 0}); }), HasSubstr("--link 0"));
    EXPECT_THAT(refusal([] { checked_costs({.ram = -1}); }), HasSubstr("--ram-rate -1"));
    EXPECT_THAT(refusal([] { checked_costs({.vram = std::nan("")}); }), HasSubstr("--vram-rate nan"));
    EXPECT_THAT(refusal([] { checked_costs({.upload_share = 1.5}); }), HasSubstr("from 0 to 1"));
}

}  // namespace
}  // namespace coterie::cli
