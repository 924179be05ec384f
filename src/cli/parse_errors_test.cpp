#include "cli/parse_errors.h"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include "cli/flag_values.h"

namespace coterie::cli {
namespace {

/// A small program with one command.
class ParseErrorsTest : public ::testing::Test {
  protected:
    ParseErrorsTest() {
        root_.allow_extras();
        CLI::App* command = root_.add_subcommand("draw");
        command->allow_extras();
        command->add_option("--width", width_)->check(whole_number(1, 80));
        command->add_option("--ratio", ratio_);
    }

    std::string error_of(std::vector<std::string> arguments) {
        std::reverse(arguments.begin(), arguments.end());
        try {
            root_.parse(arguments);
        } catch (const CLI::ParseError& error) {
            return describe_parse_error(error);
        }
        const auto unknown = root_.remaining(true);
        return unknown.empty() ? "" : describe_unknown(root_, unknown.front());
    }

    CLI::App root_;
    int width_ = 0;
    double ratio_ = 0.0;
};

TEST_F(ParseErrorsTest, NothingIsWrong) {
    EXPECT_EQ(error_of({"draw", "--width", "80", "--ratio", "0.5"}), "");
    EXPECT_EQ(width_, 80);
}

TEST_F(ParseErrorsTest, ValuesThatAFlagCannotHave) {
    for (const std::string value : {"0", "81", "-1", "8.5", "x", "8x", "99999999999999999999"}) {
        EXPECT_EQ(error_of({"draw", "--width", value}),
                  "--width: " + value + " is not a whole number from 1 to 80");
    }
    EXPECT_EQ(error_of({"draw", "--ratio", "half"}), "--ratio: half is not a number that it can have");
    EXPECT_EQ(error_of({"draw", "--ratio"}), "--ratio needs a value");
}

TEST_F(ParseErrorsTest, UnknownWords) {
    EXPECT_EQ(error_of({"draw", "--wdith=3"}),
              "unknown flag '--wdith' for 'draw'; did you mean '--width'?; see coterie draw --help");
    EXPECT_EQ(error_of({"draw", "circle"}), "unknown argument 'circle' for 'draw'; see coterie draw --help");
    EXPECT_EQ(error_of({"drwa"}), "unknown command 'drwa'; did you mean 'draw'?; see coterie --help");
    EXPECT_EQ(error_of({"--width", "3"}),
              "flag '--width' stands before any command; write coterie COMMAND --width");
}

}  // namespace
}  // namespace coterie::cli
