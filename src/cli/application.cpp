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
#include "cli/help_format.h"
#include "cli/parse_errors.h"
#include "cli/short_flags.h"

namespace coterie::cli {
namespace {

constexpr int kUsageError = 2;

int report(std::string_view message, int status) {
    fmt::print(stderr, "coterie: error: {}\n", message);
    return status;
}

/// llama.cpp's program names stand for commands.
std::vector<std::string> command_arguments(int argc, const char* const* argv) {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    const std::string name = std::filesystem::path(argc > 0 ? argv[0] : "").filename().string();
    if (name == "llama-cli") arguments.insert(arguments.begin(), "run");
    if (name == "llama-server") arguments.insert(arguments.begin(), "serve");
    if (name == "llama-bench") arguments.insert(arguments.begin(), "bench");
    return expand_short_flags(std::move(arguments));
}

void add_commands(CLI::App& root, Action& action) {
    add_run(root, action);
    add_serve(root, action);
    add_bench(root, action);
    add_logits(root, action);
    add_perplexity(root, action);
    add_plan(root, action);
    add_probe(root, action);
    add_tokenize(root, action);
    add_inspect(root, action);
    add_replay(root, action);
    add_synth(root, action);

    for (CLI::App* command : root.get_subcommands({})) command->allow_extras();
}

/// What neither the root nor a command took. The parser counts "--" among it.
std::vector<std::string> unknown_words(const CLI::App& root) {
    std::vector<std::string> words = root.remaining(true);
    std::erase(words, "--");
    return words;
}

int parse_and_run(int argc, const char* const* argv) {
    CLI::App root("Runs Mixture-of-Experts language models from GGUF files.", "coterie");
    root.formatter(std::make_shared<HelpFormat>());
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
    } catch (const CLI::RequiredError& error) {  // what is missing may stand there misspelt
        const auto unknown = unknown_words(root);
        return report(unknown.empty() ? describe_parse_error(error) : describe_unknown(root, unknown.front()),
                      kUsageError);
    } catch (const CLI::Success& request) {  // --help, --version
        return root.exit(request);
    } catch (const CLI::ParseError& error) {
        return report(describe_parse_error(error), kUsageError);
    }
    if (const auto unknown = unknown_words(root); !unknown.empty()) {
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
