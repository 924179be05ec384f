#include <CLI/CLI.hpp>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/progress_bar.h"
#include "cli/command.h"
#include "cli/flag_values.h"
#include "cli/model_options.h"
#include "cli/output_file.h"

namespace coterie::cli {
namespace {

using engine::Slice;
using engine::TokenId;

struct LogitsOptions {
    ModelOptions model;
    std::vector<TokenId> tokens;
    std::string raw;
    bool json = false;
};

/// Gets one row of logits per position, in order.
class RowWriter {
  public:
    virtual ~RowWriter() = default;
    virtual void add(std::span<const float> row) = 0;
    virtual void end() = 0;
};

/// Little-endian float32 [tokens][vocabulary], as this machine's memory has it.
class RawRows final : public RowWriter {
  public:
    RawRows(const std::string& path, std::uint64_t bytes) : file_(path, bytes) {}
    void add(std::span<const float> row) override { file_.write(std::as_bytes(row)); }
    void end() override { file_.commit(); }

  private:
    OutputFile file_;
};

/// {"tokens": [...], "vocabulary": n, "logits": [[...], ...]} with the shortest digits that give the same
/// float back; what JSON has no number for is null.
class JsonRows final : public RowWriter {
  public:
    JsonRows(std::span<const TokenId> tokens, std::int64_t vocabulary) : file_("-") {
        file_.write(fmt::format("{{\"tokens\":[{}],\"vocabulary\":{},\"logits\":[", fmt::join(tokens, ","),
                                vocabulary));
    }
    void add(std::span<const float> row) override {
        fmt::memory_buffer text;
        char separator = '[';
        if (!first_) text.push_back(',');
        first_ = false;
        for (const float value : row) {
            text.push_back(separator);
            if (std::isfinite(value)) {
                fmt::format_to(std::back_inserter(text), "{}", value);
            } else {
                text.append(std::string_view("null"));
            }
            separator = ',';
        }
        text.push_back(']');
        file_.write(std::string_view(text.data(), text.size()));
    }
    void end() override {
        file_.write("]}\n");
        file_.commit();
    }

  private:
    OutputFile file_;
    bool first_ = true;
};

void compute(engine::Engine& engine, std::span<const TokenId> tokens, RowWriter& writer) {
    engine::Sequence sequence = engine.make_sequence();
    ProgressBar bar("computing", ProgressBar::Unit::Tokens);
    const auto window = static_cast<std::size_t>(engine.window());
    for (std::size_t done = 0; done < tokens.size();) {
        const Slice slice{.sequence = &sequence,
                          .tokens = tokens.subspan(done, std::min(window, tokens.size() - done)),
                          .logits = Slice::Logits::All};
        engine.step({&slice, 1}, [&](std::int64_t, std::span<const float> row) { writer.add(row); });
        done += slice.tokens.size();
        bar.update(done, tokens.size());
    }
    writer.end();
}

void run(const LogitsOptions& options) {
    ModelOptions model = options.model;
    if (model.context == 0) model.context = static_cast<std::int64_t>(options.tokens.size());
    const std::unique_ptr<engine::Engine> engine = load_engine(open_archive(model), model);
    const auto tokens = static_cast<std::int64_t>(options.tokens.size());
    if (tokens > engine->context()) {
        fail(ErrorCode::InvalidArgument,
             "--tokens has {} tokens, more than the context of {}; use a larger -c", tokens,
             engine->context());
    }
    for (const TokenId token : options.tokens) {  // before anything is written
        if (token >= 0 && token < engine->config().vocabulary) continue;
        fail(ErrorCode::InvalidArgument, "--tokens: {} is outside the model's vocabulary of {}", token,
             engine->config().vocabulary);
    }
    if (options.raw.empty()) {
        JsonRows writer(options.tokens, engine->config().vocabulary);
        compute(*engine, options.tokens, writer);
    } else {
        const auto values = static_cast<std::uint64_t>(tokens * engine->config().vocabulary);
        RawRows writer(options.raw, values * sizeof(float));
        compute(*engine, options.tokens, writer);
    }
}

}  // namespace

void add_logits(CLI::App& root, Action& action) {
    CLI::App* command = root.add_subcommand("logits", "Print the logits behind each of the given tokens");
    const auto options = std::make_shared<LogitsOptions>();
    command
        ->add_option("--tokens", options->tokens, "token ids with commas; coterie tokenize --ids makes them")
        ->delimiter(',')
        ->check(whole_number(std::numeric_limits<TokenId>::min(), std::numeric_limits<TokenId>::max()))
        ->required()
        ->group("Logits");
    CLI::Option* raw = command->add_option("--raw", options->raw,
                                           "write float32 [tokens][vocabulary], little-endian, to a file; "
                                           "-: standard output");
    raw->group("Logits");
    command->add_flag("--json", options->json, "print JSON, as without --raw")
        ->excludes(raw)
        ->group("Logits");
    add_model_flags(*command, options->model);
    add_offload_flags(*command, options->model.offload);
    options->model.offload.profile = OffloadFlags::Profile::Reads;
    command->footer(
        "Examples:\n"
        "  coterie logits -m model.gguf --tokens 1,2,3\n"
        "  coterie logits -m model.gguf --tokens 1,2,3 --batch 1 --raw logits.f32");
    command->callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace coterie::cli
