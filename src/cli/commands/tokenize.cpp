#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/flag_values.h"
#include "cli/model_options.h"
#include "cli/text_input.h"
#include "gguf/printable.h"

namespace coterie::cli {
namespace {

struct TokenizeOptions {
    ModelOptions model;
    std::optional<std::string> prompt;
    std::string file = "-";
    bool escapes = true;
    bool bos = true;
    bool parse_special = true;
    bool ids_only = false;
    bool json = false;
    bool count = false;
};

std::string given_text(const TokenizeOptions& options) {
    if (!options.prompt) return read_text_file(options.file);
    return options.escapes ? process_escapes(*options.prompt) : *options.prompt;
}

/// {"ids": [...], "pieces": [...]}, and "count" where it is wanted; bytes of a piece that are no character
/// alone become U+FFFD.
std::string render_json(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool with_count) {
    nlohmann::ordered_json json{{"ids", ids}, {"pieces", nlohmann::json::array()}};
    for (const TokenId id : ids) json["pieces"].push_back(std::string(tokenizer.piece(id)));
    if (with_count) json["count"] = ids.size();
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string render_table(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
    std::string text;
    for (const TokenId id : ids) {
        const std::string_view piece = tokenizer.piece(id);
        text += fmt::format("{:6} -> '{}'\n", id, gguf::printable(piece, piece.size()));
    }
    return text;
}

void run(const TokenizeOptions& options) {
    const std::string text = given_text(options);
    const auto archive = open_archive(options.model);
    const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(*archive, options.model);
    const std::vector<TokenId> ids = tokenizer->encode(
        text, {.special = options.parse_special ? SpecialTokens::Parse : SpecialTokens::Plain,
               .ends = options.bos ? TextEnds::Mark : TextEnds::Leave});
    if (options.json) {
        fmt::print("{}\n", render_json(*tokenizer, ids, options.count));
        return;
    }
    if (options.ids_only) {
        fmt::print("[{}]\n", fmt::join(ids, ", "));
    } else {
        fmt::print("{}", render_table(*tokenizer, ids));
    }
    if (options.count) fmt::print("Total number of tokens: {}\n", ids.size());
}

}  // namespace

void add_tokenize(CLI::App& root, Action& action) {
    CLI::App* command = root.add_subcommand("tokenize", "Print the tokens of a text");
    const auto options = std::make_shared<TokenizeOptions>();
    const char* const group = "Tokenize";
    CLI::Option* prompt = command->add_option("-p,--prompt", options->prompt, "the text");
    prompt->group(group);
    command->add_option("-f,--file", options->file, "file with the text; -: standard input")
        ->capture_default_str()
        ->excludes(prompt)
        ->group(group);
    command->add_flag("--stdin")
        ->description("read standard input, as without -p and -f")
        ->excludes(prompt)
        ->group(kHiddenGroup);
    CLI::Option* ids = command->add_flag("--ids", options->ids_only, "print only the ids: [1, 2, 3]");
    ids->group(group);
    command->add_flag("--json", options->json, "print ids and pieces as JSON")->excludes(ids)->group(group);
    command->add_flag("--show-count", options->count, "print the number of tokens too")->group(group);
    command->add_flag("!--no-bos", options->bos, "add no BOS token, whatever the vocabulary asks for")
        ->group(group);
    command->add_flag("!--no-parse-special", options->parse_special, "special tokens are plain text")
        ->group(group);
    command
        ->add_flag("--escape,-e,!--no-escape", options->escapes,
                   "turn \\n, \\t ... of -p into characters (default)")
        ->group(group);
    add_model_flag(*command, options->model);
    add_tokenizer_flags(*command, options->model);
    command->footer(
        "Examples:\n"
        "  coterie tokenize -p \"What is a volcano?\"\n"
        "  coterie tokenize -m model.gguf -f text.txt --ids --no-bos");
    command->callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace coterie::cli
