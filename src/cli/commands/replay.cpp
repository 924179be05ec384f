#include "expert_cache/replay/replay.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/core.h>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/progress_bar.h"
#include "cli/command.h"
#include "cli/output_file.h"
#include "cli/replay/cost_flags.h"
#include "cli/replay/report.h"
#include "cli/replay/slot_list.h"
#include "cli/text_input.h"
#include "expert_cache/policy/registry.h"

namespace coterie::cli {
namespace {

using namespace expert_cache;

struct ReplayOptions {
    std::string trace;
    std::vector<std::string> policies;
    std::vector<std::string> slots{"5%", "10%", "15%", "25%", "50%", "75%", "100%"};
    std::string format = "table";
    std::string plot;
    CostFlags costs;
    bool prompts = false;
};

/// Names as the registry has them, each once.
std::vector<std::string> policies_of(const ReplayOptions& options) {
    std::vector<std::string> wanted = options.policies;
    if (wanted.empty()) {
        for (const PolicyKind& kind : policy_kinds()) wanted.emplace_back(kind.name);
    }
    std::vector<std::string> result;
    for (const std::string& name : wanted) {
        const std::string known(find_policy(name).name);
        if (std::find(result.begin(), result.end(), known) == result.end()) result.push_back(known);
    }
    return result;
}

void check_plot(const std::string& path) {
    if (path.empty() || path.ends_with(".svg")) return;
    fail(ErrorCode::InvalidArgument,
         "--plot {}: only SVG is written; give a name that ends in .svg (rsvg-convert makes a PNG of it)",
         path);
}

void check_tokens(const TraceReader& trace, const ReplayTokens& tokens, const ReplayOptions& options) {
    if (tokens.size() > 0) return;
    if (trace.tokens() == 0) fail(ErrorCode::InvalidFile, "{}: the trace holds no token", options.trace);
    fail(ErrorCode::InvalidArgument,
         "{}: none of the {} tokens was generated; --prompts replays the prompts' tokens too", options.trace,
         trace.tokens());
}

std::vector<ReplayResult> replay_all(const ReplayTokens& tokens, const std::vector<std::string>& policies,
                                     const std::vector<std::int32_t>& slots, const ReplayCosts& costs) {
    Replay replay(tokens);
    ProgressBar bar("replaying", ProgressBar::Unit::Tokens);
    const auto once = static_cast<std::uint64_t>(tokens.size());
    const std::uint64_t all = once * policies.size() * slots.size();
    std::vector<ReplayResult> results;
    for (const std::int32_t count : slots) {
        for (const std::string& policy : policies) {
            results.push_back(replay.run(policy, count, costs));
            bar.update(once * results.size(), all);
        }
    }
    return results;
}

void write_file(const std::string& path, const std::string& text) {
    OutputFile file(path);
    file.write(text);
    file.commit();
}

void run(const ReplayOptions& options) {
    const ReplayFormat format = replay_format(options.format);
    const ReplayCosts costs = checked_costs(options.costs);
    const std::vector<std::string> policies = policies_of(options);
    check_plot(options.plot);
    const std::string bytes = read_whole_file(options.trace);
    const TraceReader trace(std::as_bytes(std::span(bytes)), options.trace);
    if (!trace.warning().empty()) log::warn("{}", trace.warning());
    const ReplayTokens tokens(trace, options.prompts ? PromptTokens::Include : PromptTokens::Skip);
    check_tokens(trace, tokens, options);
    const std::vector<std::int32_t> slots = parse_slots(options.slots, trace.header().experts);
    const ReplayReport report{.trace = options.trace,
                              .header = trace.header(),
                              .tokens = tokens.size(),
                              .costs = costs,
                              .results = replay_all(tokens, policies, slots, costs)};
    if (!options.plot.empty()) write_file(options.plot, render_plot(report));
    write_file("-", render(report, format));
}

std::string policy_help() {
    std::string help = "policies, with commas; default: all.";
    for (const PolicyKind& kind : policy_kinds()) help += fmt::format("\n{}: {}", kind.name, kind.summary);
    return help;
}

}  // namespace

void add_replay(CLI::App& root, Action& action) {
    CLI::App* command = root.add_subcommand("replay", "Try cache policies on a recorded routing trace");
    const auto options = std::make_shared<ReplayOptions>();
    const auto add = [&](const char* names, auto& value, const std::string& help) {
        return command->add_option(names, value, help)->capture_default_str();
    };
    const char* const group = "Replay";
    add("trace", options->trace, "file that 'coterie run --trace' recorded; -: standard input")
        ->required()
        ->group(group);
    add("--policy", options->policies, policy_help())->delimiter(',')->group(group);
    add("--slots", options->slots, "experts that fit per layer: numbers, or shares like 25%, with commas")
        ->delimiter(',')
        ->group(group);
    add("-o,--output", options->format, "table, csv or json")->group(group);
    add("--plot", options->plot, "draw hits and times into this .svg file")->group(group);
    command->add_flag("--prompts", options->prompts, "decode the prompts' tokens too, one by one")
        ->group(group);
    add_cost_flags(*command, options->costs);
    command->footer(
        "Examples:\n"
        "  coterie run -m model.gguf --trace chat.trace\n"
        "  coterie replay chat.trace --policy admit,lru,belady --slots 10%,25%,50%\n"
        "  coterie replay chat.trace --link 12 --ram-rate 80 -o csv --plot chat.svg");
    command->callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace coterie::cli
