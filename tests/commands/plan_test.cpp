#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.h"

namespace coterie::commands_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The rate is given, so that nothing is measured and the numbers are the same everywhere.
std::vector<std::string> plan_with(std::vector<std::string> more) {
    more.insert(more.begin(), {"plan", "-m", kModel, "--ram-rate", "20", "--ram", "1G"});
    return more;
}

nlohmann::json json_of(std::vector<std::string> more) {
    more.emplace_back("--json");
    return nlohmann::json::parse(output_of(plan_with(std::move(more))));
}

std::uint64_t sum_of(const nlohmann::json& json, const std::vector<std::string>& keys) {
    std::uint64_t sum = 0;
    for (const std::string& key : keys) sum += json.at(key).get<std::uint64_t>();
    return sum;
}

TEST(PlanTest, WithoutAGpuTheCpuDoesAll) {
    const std::string text = output_of(plan_with({}));
    EXPECT_THAT(text, HasSubstr("cpu: there is no device"));
    EXPECT_THAT(text, HasSubstr("tokens/s"));
    EXPECT_THAT(text, Not(HasSubstr("hits")));
}

TEST(PlanTest, AModelThatFitsIsResident) {
    const auto json = json_of({"--fake-gpu", "64M@1G/s", "--vram-rate", "900", "--handoff", "5"});
    EXPECT_EQ(json.at("strategy"), "resident");
    EXPECT_EQ(json.at("hit_rate"), 1);
    EXPECT_EQ(json.at("devices").at(0).at("slots"), (std::vector<int>{0, 64, 64, 64, 64, 64, 64}));
}

TEST(PlanTest, SlotsByNumberMakeACacheWhoseBytesAddUp) {
    const auto json = json_of({"--fake-gpu", "8M@1G/s,4M@500M/s:20us", "--expert-cache", "16"});
    EXPECT_EQ(json.at("strategy"), "cache");
    EXPECT_EQ(json.at("hits_from"), "assumption");
    ASSERT_EQ(json.at("devices").size(), 2U);
    for (const auto& device : json.at("devices")) {
        EXPECT_EQ(sum_of(device, {"dense_bytes", "kv_bytes", "workspace_bytes", "slot_bytes", "reserve_bytes",
                                  "unused_bytes"}),
                  device.at("free_bytes"));
    }
    for (std::size_t layer = 1; layer < 7; ++layer) {
        EXPECT_EQ(json.at("devices")[0].at("slots")[layer].get<int>() +
                      json.at("devices")[1].at("slots")[layer].get<int>(),
                  16);
    }
    EXPECT_EQ(json.at("costs").at("devices")[1].at("link_bytes_per_second"), 500e6);
    EXPECT_EQ(json.at("costs").at("devices")[1].at("copy_seconds"), 20e-6);
}

TEST(PlanTest, WindowsOfPromptsArePlannedOrGiven) {
    const std::vector<std::string> flags{"--fake-gpu", "12M@10M/s", "--expert-cache", "30", "-b", "64",
                                         "-c",         "4096"};
    const auto planned = json_of(flags).at("window");
    EXPECT_GT(planned.at("tokens"), 64);
    EXPECT_EQ(planned.at("tokens"), planned.at("planned_tokens"));
    EXPECT_EQ(planned.at("limit"), "memory");
    std::vector<std::string> fixed = flags;
    fixed.insert(fixed.end(), {"--window", "1000"});
    EXPECT_EQ(json_of(fixed).at("window"), nlohmann::json::parse(R"({"tokens": 1000, "limit": "flag"})"));
    EXPECT_GT(sum_of(json_of(fixed).at("ram"), {"workspace_bytes", "pinned_bytes"}),
              sum_of(json_of(flags).at("ram"), {"workspace_bytes", "pinned_bytes"}));
    EXPECT_EQ(json_of({"--window", "1000", "-b", "64"}).at("window").at("tokens"), 64);  // without a device
    EXPECT_THAT(output_of(plan_with(flags)), HasSubstr("prompts "));
    expect_error(plan_with({"--fake-gpu", "12M@10M/s", "--window", "0"}), 2, {"--window 0"});
}

TEST(PlanTest, CostsCanBeKeptAndGivenBack) {
    const TemporaryFolder folder;
    const std::vector<std::string> flags{"--fake-gpu", "8M@1G/s", "--expert-cache", "16"};
    const auto json = json_of(flags);
    write_file(folder.file("costs.json"), json.at("costs").dump());
    std::vector<std::string> again = flags;
    again.insert(again.end(), {"--costs", folder.file("costs.json")});
    EXPECT_EQ(json_of(again), json);
    expect_error(plan_with({"--costs", folder.file("costs.json")}), 2,
                 {"costs.json", "1 devices", "there are 0"});
    write_file(folder.file("costs.json"), "{}");
    expect_error(plan_with({"--costs", folder.file("costs.json")}), 2, {"costs.json"});
}

TEST(PlanTest, KnowsLlamaCppsFlags) {
    EXPECT_THAT(output_of(plan_with({"--fake-gpu", "64M@1G/s", "-cmoe"})), HasSubstr("--cpu-moe"));
    const auto json =
        json_of({"--fake-gpu", "64M@1G/s", "-ncmoe", "4", "--vram-rate", "900", "--handoff", "5"});
    EXPECT_EQ(json.at("devices").at(0).at("slots"), (std::vector<int>{0, 0, 0, 0, 64, 64, 64}));
}

TEST(PlanTest, RefusesWithWhatIsMissingAndWhatWouldWork) {
    expect_error(plan_with({"--fake-gpu", "8M@1G/s", "--expert-cache", "60"}), 4,
                 {"60 slots", "bytes are missing", "--expert-cache 34"});
    expect_error(plan_with({"--fake-gpu", "12M@1G/s", "--dense-on-gpu", "-c", "65536"}), 4,
                 {"for the context", "bytes are missing", "(-c "});
    expect_error(plan_with({"--fake-gpu", "8M@1G/s", "--vram", "9M"}), 4,
                 {"--vram asks for", "bytes are missing"});
    expect_error({"plan", "-m", kModel, "--ram-rate", "20", "--ram", "1M"}, 4,
                 {"RAM needs", "bytes are missing"});
}

TEST(PlanTest, NamesTheFlagOfABadValue) {
    expect_error(plan_with({"--expert-cache", "some"}), 2, {"--expert-cache some", "auto, off"});
    expect_error(plan_with({"--vram", "1G"}), 2, {"--vram", "there are 0 devices"});
    expect_error(plan_with({"--fake-gpu", "64@"}), 2, {"64@"});
    expect_error({"plan", "-m", kModel, "--ram", "lots"}, 2, {"--ram lots"});
}

TEST(PlanTest, GoesOnWithoutAProfileThatDoesNotFit) {
    const TemporaryFolder folder;
    write_file(folder.file("profile"), "no profile");
    const Outcome outcome =
        run(plan_with({"--fake-gpu", "8M@1G/s", "--cache-profile", folder.file("profile")}));
    EXPECT_EQ(outcome.status, 0);
    EXPECT_THAT(outcome.errors, HasSubstr("profile"));
    EXPECT_THAT(outcome.output, HasSubstr("plan "));
}

}  // namespace
}  // namespace coterie::commands_test
