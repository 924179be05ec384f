#include "cli/parse_errors.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "cli/short_flags.h"
#include "cli/suggestion.h"

namespace coterie::cli {
namespace {

std::vector<std::string> command_names(const CLI::App& root) {
    std::vector<std::string> names;
    for (const CLI::App* command : root.get_subcommands({})) names.push_back(command->get_name());
    return names;
}

/// Every "--name" that the command knows.
std::vector<std::string> flag_names(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    return names;
}

const CLI::App* chosen_command(const CLI::App& root) {
    const auto parsed = root.get_subcommands();
    return parsed.empty() ? nullptr : parsed.front();
}

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
    const auto near = nearest(word, known);
    return near ? fmt::format("; did you mean '{}'?", *near) : "";
}

}  // namespace

std::string describe_parse_error(const CLI::ParseError& error) {
    std::string text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    // The parser's own words: "--prompt: 1 required TEXT missing", "Could not convert: --temp = hot".
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) && text.ends_with("missing")) {
        return text.substr(0, text.find(':')) + " needs a value";
    }
    const std::string conversion = "Could not convert: ";
    if (dynamic_cast<const CLI::ConversionError*>(&error) && text.starts_with(conversion)) {
        const std::size_t equals = text.find(" = ");
        return fmt::format("{}: {} is not a number that it can have",
                           text.substr(conversion.size(), equals - conversion.size()),
                           equals == std::string::npos ? "" : text.substr(equals + 3));
    }
    return text;
}

std::string describe_unknown(const CLI::App& root, const std::string& word) {
    const std::string name = word.substr(0, word.find('='));
    const bool is_flag = word.starts_with('-');
    if (const CLI::App* command = chosen_command(root)) {
        return fmt::format("unknown {} '{}' for '{}'{}; see coterie {} --help", is_flag ? "flag" : "argument",
                           name, command->get_name(), suggestion(name, flag_names(*command)),
                           command->get_name());
    }
    if (is_flag) {
        return fmt::format("flag '{}' stands before any command; write coterie COMMAND {}", name, name);
    }
    return fmt::format("unknown command '{}'{}; see coterie --help", word,
                       suggestion(word, command_names(root)));
}

std::string describe_unknown_short_flag(const std::string& word) {
    const std::string name = word.substr(0, word.find('='));
    return fmt::format("unknown flag '{}'{}; coterie COMMAND --help lists all", name,
                       suggestion(name, short_flags()));
}

}  // namespace coterie::cli
