#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace coterie::cli {

/// What the chosen command does; set while the command line is parsed, called after it.
using Action = std::function<void()>;

/// Each adds its subcommand with flags, help and examples to `root`. One file per command.
void add_run(CLI::App& root, Action& action);
void add_bench(CLI::App& root, Action& action);
void add_inspect(CLI::App& root, Action& action);
void add_logits(CLI::App& root, Action& action);
void add_perplexity(CLI::App& root, Action& action);
void add_plan(CLI::App& root, Action& action);
void add_probe(CLI::App& root, Action& action);
void add_serve(CLI::App& root, Action& action);
void add_replay(CLI::App& root, Action& action);
void add_synth(CLI::App& root, Action& action);
void add_tokenize(CLI::App& root, Action& action);

}  // namespace coterie::cli
