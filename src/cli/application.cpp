#include "cli/application.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>
#include <new>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "base/error.h"
#include "base/standard_streams.h"
#include "cli/command.h"
#include "cli/help_format.h"
#include "cli/interrupt.h"
#include "cli/parse_errors.h"
#include "cli/short_flags.h"
#include "gguf/printable.h"

namespace coterie::cli {
namespace {

constexpr int kUsageError = 2;

/// In one line, whatever a file or a path that it names holds.
int report(std::string_view message, int status) {
    constexpr std::size_t kLongest = 2000;
    say("coterie: error: " + gguf::printable(message, kLongest) + "\n");
    return status;
}

/// A program that was asked to end says by which signal, as shells do.
int status_of(const Error& error) {
    if (error.code() == ErrorCode::Cancelled && ending_signal() != 0) return 128 + ending_signal();
    return exit_status(error.code());
}

/// What reading a mapped file ends in where the file was cut or its disk fails: there is nobody to return to.
void on_bus_error(int) {
    constexpr std::string_view kMessage =
        "coterie: error: a file was cut while it was in use, or its disk cannot be read; get it again, or "
        "check the disk\n";
    static_cast<void>(!::write(STDERR_FILENO, kMessage.data(), kMessage.size()));
    _exit(exit_status(ErrorCode::Io));
}

/// What was printed has to be there before success is reported.
int finish_output() {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
    return report(fmt::format("standard output cannot be written: {}", std::strerror(errno)),
                  exit_status(ErrorCode::Io));
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

/// A flag that is given twice has its last value, and a number is not empty.
void refine(CLI::Option& option) {
    const bool has_one_value = option.get_items_expected_max() == 1 && option.get_type_size() == 1;
    if (has_one_value && !option.get_positional())
        option.multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    const std::string type = option.get_type_name();
    if (!type.starts_with("INT") && !type.starts_with("UINT") && !type.starts_with("FLOAT")) return;
    option.check([](const std::string& text) { return text.empty() ? "needs a number" : ""; }, "");
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

    for (CLI::App* command : root.get_subcommands({})) {
        command->allow_extras();
        for (CLI::Option* option : command->get_options()) refine(*option);
    }
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
    if (const auto unknown = unknown_short_flag(arguments)) {
        return report(describe_unknown_short_flag(*unknown), kUsageError);
    }
    std::reverse(arguments.begin(), arguments.end());  // the parser takes them from the back
    try {
        root.parse(arguments);
    } catch (const CLI::Success& request) {  // --help, --version
        root.exit(request);
        return finish_output();
    } catch (const CLI::ParseError& error) {  // what is missing may stand there misspelt
        const auto unknown = unknown_words(root);
        return report(unknown.empty() ? describe_parse_error(error) : describe_unknown(root, unknown.front()),
                      kUsageError);
    }
    if (const auto unknown = unknown_words(root); !unknown.empty()) {
        return report(describe_unknown(root, unknown.front()), kUsageError);
    }
    if (action) action();
    return finish_output();
}

}  // namespace

int run_application(int argc, const char* const* argv) {
    hold_standard_streams();
    std::signal(SIGBUS, on_bus_error);
    std::setlocale(LC_ALL, "C.UTF-8");  // numbers have a point, whatever the user's language
    try {
        return parse_and_run(argc, argv);
    } catch (const Error& error) {
        return report(error.what(), status_of(error));
    } catch (const std::bad_alloc&) {
        return report("out of memory; use a smaller model, context (-c) or batch (-b)",
                      exit_status(ErrorCode::OutOfMemory));
    } catch (const std::system_error& error) {
        if (std::ferror(stdout) == 0) return report(error.what(), exit_status(ErrorCode::Internal));
        return report(fmt::format("standard output cannot be written: {}", error.code().message()),
                      exit_status(ErrorCode::Io));
    } catch (const std::exception& error) {
        return report(error.what(), exit_status(ErrorCode::Internal));
    }
}

}  // namespace coterie::cli
