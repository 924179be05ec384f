#include "engine/probe/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/probe/machine_cache.h"
#include "engine/probe/machine_profile_file.h"
#include "program.h"

namespace coterie::commands_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A cache folder of the test's own; one thread, so that little is measured.
class ProbeTest : public ::testing::Test {
  protected:
    Outcome run_here(std::vector<std::string> arguments) const {
        arguments.insert(arguments.end(), {"-t", "1"});
        return Program(std::move(arguments), {.environment = {"XDG_CACHE_HOME=" + folder_.file("cache")}})
            .finish();
    }
    Outcome probe(std::vector<std::string> more) const {
        more.insert(more.begin(), {"probe", "--device", "none"});
        return run_here(std::move(more));
    }
    nlohmann::json json_of(std::vector<std::string> more) const {
        more.emplace_back("--json");
        const Outcome outcome = probe(std::move(more));
        EXPECT_EQ(outcome.status, 0) << outcome.errors;
        return nlohmann::json::parse(outcome.output);
    }
    std::string path_of(const engine::MachineIdentity& machine) const {
        return folder_.file("cache/coterie/" + engine::machine_profile_name(machine));
    }
    /// As if measured earlier; numbers that no measurement gives.
    void keep(const std::vector<DeviceInfo>& gpus, bool crowded = false) const {
        engine::MachineProfile profile;
        profile.crowded = crowded;
        profile.machine = cli::machine_of(1, gpus);
        profile.measured_at = "2001-01-31T12:00:00Z";
        profile.ram_reads = {{1, 12.5e9}};
        profile.integer_peak = 0.24e12;
        profile.experts = {{engine::usual_expert().kind, 1000, 2000, {111e-6, 222e-6, 333e-6, 444e-6}}};
        engine::save_machine_profile(profile, path_of(profile.machine));
    }
    const TemporaryFolder folder_;
};

TEST_F(ProbeTest, MeasuresOnceAndAgainWhenAsked) {
    const auto first = json_of({});
    ASSERT_EQ(first.at("ram_reads").size(), 1u);
    EXPECT_EQ(first.at("ram_reads")[0].at("threads"), 1);
    EXPECT_GT(first.at("ram_reads")[0].at("bytes_per_second"), 1e8);
    EXPECT_LT(first.at("ram_reads")[0].at("bytes_per_second"), 1e12);
    EXPECT_GT(first.at("integer_peak"), 1e8);
    ASSERT_EQ(first.at("experts").size(), 1u);
    EXPECT_EQ(first.at("experts")[0].at("seconds").size(), 4u);
    EXPECT_EQ(first.at("gpus"), nlohmann::json::array());
    EXPECT_EQ(json_of({}), first);
    EXPECT_NE(json_of({"--refresh"}), first);
}

TEST_F(ProbeTest, SaysWhatTheNumbersMean) {
    keep({});
    const Outcome outcome = probe({});
    EXPECT_EQ(outcome.errors, "");
    EXPECT_THAT(outcome.output, HasSubstr("1 thread, "));
    EXPECT_THAT(outcome.output, HasSubstr("measured at 2001-01-31T12:00:00Z"));
    EXPECT_THAT(outcome.output, HasSubstr("12.5 GB/s"));
    EXPECT_THAT(outcome.output, HasSubstr("takes 80.0 ms"));
    EXPECT_THAT(outcome.output, HasSubstr("0.24 T/s"));
    EXPECT_THAT(outcome.output, HasSubstr("40 tokens/s"));
    EXPECT_THAT(outcome.output, HasSubstr("111 us    222 us    333 us    444 us"));
    EXPECT_THAT(outcome.output, Not(HasSubstr("GPU 0")));
}

TEST_F(ProbeTest, AddsTheModelsExperts) {
    keep({});
    const auto json = json_of({"-m", kModel});
    EXPECT_EQ(json.at("measured_at"), "2001-01-31T12:00:00Z");
    ASSERT_GT(json.at("experts").size(), 1u);
    EXPECT_THAT(json.at("experts")[1].at("kind").get<std::string>(), StartsWith("Q5_K"));
    EXPECT_EQ(json_of({"-m", kModel}), json);
    EXPECT_EQ(json_of({}), json);
}

TEST_F(ProbeTest, MeasuresAgainWhereTheFileIsDamaged) {
    keep({});
    write_file(path_of(cli::machine_of(1, {})), "{");
    const Outcome outcome = probe({"--json"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_THAT(outcome.errors, HasSubstr("is damaged; it is ignored"));
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1);
    EXPECT_EQ(probe({"--json"}).output, outcome.output);
}

TEST_F(ProbeTest, GoesOnWhereNothingCanBeKept) {
    write_file(folder_.file("cache"), "a file where a folder is expected");
    const Outcome outcome = probe({"--json"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_THAT(outcome.errors, HasSubstr("is not kept: cannot create"));
    EXPECT_GT(nlohmann::json::parse(outcome.output).at("integer_peak"), 0);
}

TEST_F(ProbeTest, PlansTakeItsRatesWhereNoneIsGiven) {
    keep(list_devices().devices);
    const std::vector<std::string> plan{"plan", "-m", kModel, "--fake-gpu", "8M@1G/s", "--json"};
    const auto costs = nlohmann::json::parse(run_here(plan).output).at("costs");
    EXPECT_EQ(costs.at("cpu").at("read_bytes_per_second"), 12.5e9);
    EXPECT_EQ(costs.at("ram_bytes_per_second"), 12.5e9);
    std::vector<std::string> given = plan;
    given.insert(given.end(), {"--ram-rate", "20"});
    const auto other = nlohmann::json::parse(run_here(given).output).at("costs");
    EXPECT_EQ(other.at("cpu").at("read_bytes_per_second"), 20e9);
    EXPECT_EQ(other.at("cpu").at("compute"), costs.at("cpu").at("compute"));  // not measured anew
}

TEST_F(ProbeTest, NumbersOfBusyCoresAreNamedAndServeNoPlan) {
    keep(list_devices().devices, true);
    EXPECT_THAT(run_here({"probe"}).output, HasSubstr("numbers are too low"));
    const auto plan = nlohmann::json::parse(run_here({"plan", "-m", kModel, "--json"}).output);
    EXPECT_NE(plan.at("costs").at("cpu").at("read_bytes_per_second"), 12.5e9);
}

TEST_F(ProbeTest, NamesTheFlagOfABadValue) {
    expect_error({"probe", "--device", "77"}, 2, {"--device 77", "none"});
    expect_error({"probe", "--device", "0x"}, 2, {"--device 0x"});
    expect_error({"probe", "-t", "0"}, 2, {"--threads"});
    expect_error({"probe", "-m", "/nowhere.gguf"}, 3, {"/nowhere.gguf"});
}

}  // namespace
}  // namespace coterie::commands_test
