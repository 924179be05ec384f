#include "cli/perplexity.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/progress_bar.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/text_input.h"

namespace coterie::cli {
namespace {

struct PerplexityFlags {
    ModelOptions model;
    std::string file;
    bool special = false;
    bool bos = false;
    bool json = false;
};

constexpr std::int64_t kDefaultWindow = 512;

std::string render(const PerplexityResult& result, std::int64_t window) {
    return fmt::format("perplexity {:.4f} +/- {:.4f}, mean nll {:.6f} over {} of {} tokens, windows of {}",
                       result.perplexity(), result.standard_error, result.mean_nll, result.predicted,
                       result.tokens, window);
}

std::string render_json(const PerplexityResult& result, std::int64_t window, const PerplexityFlags& options) {
    const nlohmann::ordered_json json{{"perplexity", result.perplexity()},
                                      {"standard_error", result.standard_error},
                                      {"mean_nll", result.mean_nll},
                                      {"tokens", result.tokens},
                                      {"predicted_tokens", result.predicted},
                                      {"window", window},
                                      {"special_tokens_parsed", options.special}};
    return json.dump();
}

std::optional<TokenId> bos(const Tokenizer& tokenizer, const PerplexityFlags& options) {
    if (!options.bos) return std::nullopt;
    if (!tokenizer.bos()) {
        fail(ErrorCode::InvalidArgument, "--bos: the model's vocabulary has no such token; leave it out");
    }
    return tokenizer.bos();
}

void run(const PerplexityFlags& options) {
    ModelOptions model = options.model;
    if (model.context == 0) model.context = kDefaultWindow;
    if (model.context < 2) fail(ErrorCode::InvalidArgument, "-c 1: a window needs at least 2 tokens");
    const std::string text = read_text_file(options.file);
    const auto archive = open_archive(model);
    const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(*archive, model);
    const std::vector<TokenId> tokens =
        tokenizer->encode(text, {.special = options.special ? SpecialTokens::Parse : SpecialTokens::Plain});
    const PerplexityOptions how{.window = model.context, .bos = bos(*tokenizer, options)};
    const std::unique_ptr<engine::Engine> engine = load_engine(archive, model);
    const PerplexityResult result = [&] {
        ProgressBar bar("computing", ProgressBar::Unit::Tokens);
        return measure_perplexity(*engine, tokens, how, [&](std::int64_t done, std::int64_t total) {
            bar.update(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
        });
    }();
    fmt::print("{}\n", options.json ? render_json(result, how.window, options) : render(result, how.window));
}

}  // namespace

void add_perplexity(CLI::App& root, Action& action) {
    CLI::App* command = root.add_subcommand("perplexity", "Measure how well the model predicts a text");
    const auto options = std::make_shared<PerplexityFlags>();
    const char* const group = "Perplexity";
    command->add_option("-f,--file", options->file, "text to predict; -: standard input")
        ->required()
        ->group(group);
    command->add_flag("--special", options->special, "special tokens in the text count as such")
        ->group(group);
    command->add_flag("--bos", options->bos, "begin each window with the BOS token")->group(group);
    command->add_flag("--json", options->json, "print the result as JSON")->group(group);
    add_model_flags(*command, options->model);
    add_offload_flags(*command, options->model.offload);
    options->model.offload.profile = OffloadFlags::Profile::Reads;
    command->footer(
        "The text is tokenised once and cut into windows of -c tokens (default 512). Each window starts "
        "from\n"
        "an empty context; all its tokens but the first are predicted.\n"
        "Example:\n"
        "  coterie perplexity -m model.gguf -f wiki.test.raw -c 2048");
    command->callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace coterie::cli
