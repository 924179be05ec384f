#include <algorithm>
#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "program.h"

// How a run ends that does not come to its answer's end.
namespace coterie::commands_test {
namespace {

using ::testing::HasSubstr;

TEST(RunEndsTest, AFileThatIsCutWhileItIsReadEndsInOneLine) {
    TemporaryFolder folder;
    const std::string copy = folder.file("copy.gguf");
    std::filesystem::copy_file(kModel, copy);
    Program program({"run", "-m", copy, "--load-mode", "mmap", "-no-cnv", "--ignore-eos", "-n", "100000",
                     "-c", "100000", "-p", "Once"});
    program.wait_for_output(1);
    std::filesystem::resize_file(copy, 0);
    const Outcome outcome = program.finish();
    EXPECT_EQ(outcome.status, 5);
    EXPECT_THAT(outcome.errors, HasSubstr("a file was cut while it was in use"));
}

/// What a run leaves in the folder of its profile: the profile, and nothing half written.
void expect_ended_by(int signal, std::vector<std::string> more, std::string_view input) {
    const TemporaryFolder folder;
    const std::string profile = folder.file("kept/profile");
    std::filesystem::create_directories(folder.file("kept"));
    std::vector<std::string> arguments{
        "run", "-m",           kModel, "--fake-gpu", "8M@1G/s",         "--expert-cache",
        "8",   "--ignore-eos", "-c",   "16384",      "--cache-profile", profile};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Program program(arguments);
    program.send(input);
    program.wait_for_output(1);
    program.send_signal(signal);
    const Outcome outcome = program.finish();
    EXPECT_EQ(outcome.status, 128 + signal) << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr(signal == SIGTERM ? "ended by SIGTERM" : "ended by SIGHUP"));
    ASSERT_TRUE(std::filesystem::exists(profile));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.file("kept")), {}), 1);
}

TEST(RunEndsTest, SignalsThatEndItKeepWhatItLearnt) {
    for (const int signal : {SIGTERM, SIGHUP}) {
        expect_ended_by(signal, {"-n", "16000", "-p", "define volcano"}, "");
        expect_ended_by(signal, {"-n", "16000"}, "define volcano\n");  // within an answer of a chat
    }
}

TEST(RunEndsTest, SignalsEndAChatThatWaits) {
    Program program({"run", "-m", kModel, "-n", "2", "--stats"});
    program.send("Hello\n");
    program.wait_for_errors("answer 2 tokens");
    program.send_signal(SIGTERM);
    program.wait_for_end_of_output();  // its input is still open
    EXPECT_EQ(program.finish().status, 128 + SIGTERM);
}

TEST(RunEndsTest, AModelWhoseLogitsAreNoNumbersIsNamed) {
    const auto inspected = nlohmann::json::parse(output_of({"inspect", "-m", kModel, "--json"}));
    const auto tensors = inspected.at("tensors");
    const auto norm = std::find_if(tensors.begin(), tensors.end(),
                                   [](const auto& t) { return t.at("name") == "output_norm.weight"; });
    ASSERT_NE(norm, tensors.end());
    std::string bytes = read_file(kModel);
    bytes.replace(norm->at("offset").get<std::size_t>(), 4, "\xff\xff\xff\x7f");  // F32: NaN
    const TemporaryFolder folder;
    const std::string damaged = folder.file("damaged.gguf");
    write_file(damaged, bytes);
    for (const char* temperature : {"0", "0.8"})
        expect_error({"run", "-m", damaged, "--temp", temperature, "-no-cnv", "-p", "Hello"}, 3,
                     {damaged, "NaN", "coterie inspect --check"});
    const Outcome chat = run({"run", "-m", damaged}, "Hello\nHello\n");
    EXPECT_EQ(chat.status, 3);
    EXPECT_EQ(std::count(chat.errors.begin(), chat.errors.end(), '\n'), 1) << chat.errors;
}

}  // namespace
}  // namespace coterie::commands_test
