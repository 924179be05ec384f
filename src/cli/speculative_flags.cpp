#include "cli/speculative_flags.h"

#include <CLI/CLI.hpp>

#include "cli/flag_values.h"

namespace coterie::cli {
namespace {

constexpr std::int64_t kMostDrafted = 48;  ///< with what a recurrent model reads again, below a cell of 64

}  // namespace

void add_speculative_flags(CLI::App& command, SpeculativeFlags& flags) {
    const char* const group = "Drafts";
    command
        .add_option(
            "--spec-type", flags.source,
            "guess what follows and compute it ahead: none, or ngram-simple, which goes on as the text did "
            "after the same words before; the answer stays the same")
        ->capture_default_str()
        ->group(group);
    command
        .add_option("--spec-draft-n-max,--draft-max,--draft-n,--draft", flags.options.most_tokens,
                    "tokens of a draft at most; fewer where more would not pay")
        ->check(whole_number(1, kMostDrafted))
        ->capture_default_str()
        ->group(group);
    command
        .add_option("--spec-ngram-size-n", flags.options.ngram, "equal tokens that make a draft, at least")
        ->check(whole_number(1, 1024))
        ->capture_default_str()
        ->group(group);
}

speculative::SpeculativeOptions speculative_options(const SpeculativeFlags& flags) {
    speculative::SpeculativeOptions options = flags.options;
    options.source = speculative::parse_draft_source(flags.source);
    return options;
}

}  // namespace coterie::cli
