#include "cli/application.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <clocale>
#include <cstdio>
#include <filesystem>
#include <fmt/core.h>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/short_flags.h"
#include "cli/suggestion.h"

namespace coterie::cli {
namespace {

constexpr int kUsageError = 2;

int report(std::string_view message, int status) {
    fmt::print(stderr, "coterie: error: {}\n", message);
    return status;
}

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

/// One line for arguments that nothing took, with the nearest known word.
std::string describe_unknown(const CLI::App& root, const std::string& word) {
    const CLI::App* command = chosen_command(root);
    if (!command) {
        const auto near = nearest(word, command_names(root));
        return fmt::format("unknown command '{}'{}; see coterie --help", word,
                           near ? fmt::format("; did you mean '{}'?", *near) : "");
    }
    const std::string name = word.substr(0, word.find('='));
    const auto near = nearest(name, flag_names(*command));
    return fmt::format("unknown {} '{}' for '{}'{}; see coterie {} --help",
                       word.starts_with('-') ? "flag" : "argument", name, command->get_name(),
                       near ? fmt::format("; did you mean '{}'?", *near) : "", command->get_name());
}

/// llama.cpp's program names stand for commands.
std::vector<std::string> command_arguments(int argc, const char* const* argv) {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    const std::string name = std::filesystem::path(argc > 0 ? argv[0] : "").filename().string();
    if (name == "llama-cli") arguments.insert(arguments.begin(), "run");
    if (name == "llama-bench") arguments.insert(arguments.begin(), "bench");
    return expand_short_flags(std::move(arguments));
}

void add_commands(CLI::App& root, Action& action) {
    add_run(root, action);
    add_bench(root, action);
    add_logits(root, action);
    add_perplexity(root, action);
    add_tokenize(root, action);
    add_inspect(root, action);
    add_synth(root, action);

    for (CLI::App* command : root.get_subcommands({})) command->allow_extras();
}

int parse_and_run(int argc, const char* const* argv) {
    CLI::App root("Runs Mixture-of-Experts language models from GGUF files.", "coterie");
    root.set_version_flag("--version", "coterie " COTERIE_VERSION);
    root.footer(
        "coterie COMMAND --help lists a command's flags.\nWithout -m a command uses the built-in demo "
        "model.");
    root.allow_extras();
    Action action;
    add_commands(root, action);

    std::vector<std::string> arguments = command_arguments(argc, argv);
    if (arguments.empty()) {
        fmt::print("{}", root.help());
        return 0;
    }
    std::reverse(arguments.begin(), arguments.end());  // the parser takes them from the back
    try {
        root.parse(arguments);
    } catch (const CLI::Success& request) {  // --help, --version
        return root.exit(request);
    } catch (const CLI::ParseError& error) {
        std::string text = error.what();
        std::replace(text.begin(), text.end(), '\n', ' ');
        return report(text, kUsageError);
    }
    if (const auto unknown = root.remaining(true); !unknown.empty()) {
        return report(describe_unknown(root, unknown.front()), kUsageError);
    }
    if (action) action();
    return 0;
}

}  // namespace

int run_application(int argc, const char* const* argv) {
    std::setlocale(LC_ALL, "C.UTF-8");  // numbers have a point, whatever the user's language
    try {
        return parse_and_run(argc, argv);
    } catch (const Error& error) {
        return report(error.what(), exit_status(error.code()));
    } catch (const std::bad_alloc&) {
        return report("out of memory; use a smaller model, context (-c) or batch (-b)",
                      exit_status(ErrorCode::OutOfMemory));
    } catch (const std::exception& error) {
        return report(error.what(), exit_status(ErrorCode::Internal));
    }
}

}  // namespace coterie::cli
