#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/standard_streams.h"
#include "cli/answer_grammar.h"
#include "cli/chat_session.h"
#include "cli/command.h"
#include "cli/environment.h"
#include "cli/flag_values.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/replay/trace_recorder.h"
#include "cli/sampling_flags.h"
#include "cli/speculative_flags.h"
#include "cli/text_input.h"

namespace coterie::cli {
namespace {

struct RunOptions {
    ModelOptions model;
    SamplingFlags sampling;
    GrammarFlags grammar;
    SpeculativeFlags drafts;
    ChatOptions chat;
    std::optional<std::string> prompt;
    std::string prompt_file;
    std::string system_prompt_file;
    std::string trace;  ///< file to record routing in; empty: none
    std::int64_t limit = -1;
    bool raw = false;  ///< -no-cnv: the prompt is completed as it is
    bool escapes = true;
    bool stats = false;
    bool accepted = false;  ///< target of llama.cpp's flags that say what holds anyway
};

void write_answer(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
    fail(ErrorCode::Io, "standard output cannot be written: {}", std::strerror(errno));
}

/// Thoughts are not part of the answer: dimmed, on a terminal's standard error, nowhere else.
constexpr auto write_reasoning = [](std::string_view text) {
    if (isatty(STDERR_FILENO)) say(fmt::format("\033[2m{}\033[0m", text));
};

void report_end(const GenerationStats& stats, const RunOptions& options, engine::Engine& engine) {
    if (stats.stop == StopReason::ContextFull) {
        log::warn("the answer was cut: the context of {} tokens is full; use a larger -c", engine.context());
    }
    if (options.stats) say(fmt::format("coterie: {}\n{}", describe(stats), describe_offload(engine)));
    engine.request_ended();
    save_profile(engine, options.model.offload, SaveProfile::IfDue);
}

std::optional<std::string> given_prompt(const RunOptions& options) {
    if (!options.prompt_file.empty()) {
        if (options.prompt) fail(ErrorCode::InvalidArgument, "-p and -f both give a prompt; leave one out");
        return read_text_file(options.prompt_file);
    }
    if (!options.prompt) return std::nullopt;
    return options.escapes ? process_escapes(*options.prompt) : *options.prompt;
}

/// What a run needs, loaded in an order that lets the template's worker start beside the model.
struct LoadedForRun {
    explicit LoadedForRun(const RunOptions& options)
        : worker(std::make_shared<TemplateWorker>(worker_options(options.chat))) {
        if (!options.raw) worker->prepare();
        archive = open_archive(options.model);
        tokenizer = load_tokenizer(*archive, options.model);
        check_early(options);
        engine = load_engine(archive, options.model);
        sampler = make_sampler(options.sampling, *tokenizer, engine->config().vocabulary);
        if (AnswerGrammar::is_wanted(options.grammar))
            grammar = std::make_unique<AnswerGrammar>(options.grammar, *tokenizer);
        if (!options.trace.empty()) recorder = std::make_unique<TraceRecorder>(options.trace, *engine);
    }

    /// What would else be found only once the whole model is loaded.
    void check_early(const RunOptions& options) const {
        static_cast<void>(make_sampler(options.sampling, *tokenizer,
                                       static_cast<std::int64_t>(tokenizer->vocabulary_size())));
        const std::string& file = options.chat.template_file;
        if (!file.empty() && !std::filesystem::exists(file))
            fail(ErrorCode::NotFound, "--chat-template-file {}: there is no such file", file);
    }

    static WorkerOptions worker_options(const ChatOptions& chat) {
        WorkerOptions options;
        if (!chat.python.empty()) options.python = chat.python;
        return options;
    }

    std::shared_ptr<TemplateWorker> worker;
    std::shared_ptr<const gguf::Archive> archive;
    std::unique_ptr<Tokenizer> tokenizer;
    std::unique_ptr<engine::Engine> engine;
    std::unique_ptr<SamplerChain> sampler;
    std::unique_ptr<AnswerGrammar> grammar;   ///< or null
    std::unique_ptr<TraceRecorder> recorder;  ///< or null
};

/// Takes an answer's text; a long answer must not keep the profile from being saved.
auto writing_and_saving(LoadedForRun& loaded, const RunOptions& options) {
    return [&](std::string_view text) {
        write_answer(text);
        save_profile(*loaded.engine, options.model.offload, SaveProfile::IfDue);
    };
}

StopReason complete(LoadedForRun& loaded, const RunOptions& options, const std::string& prompt) {
    engine::Sequence sequence = loaded.engine->make_sequence();
    const std::vector<TokenId> tokens = loaded.tokenizer->encode(
        prompt, {.special = SpecialTokens::Parse, .ends = TextEnds::Mark, .plain_ranges = {}});
    std::optional<GrammarConstraint> constraint;
    if (loaded.grammar) constraint.emplace(loaded.grammar->start({}));
    const auto emit = writing_and_saving(loaded, options);
    const GenerationStats stats = generate(*loaded.engine, sequence, *loaded.tokenizer, *loaded.sampler,
                                           {.prompt = tokens,
                                            .limit = options.limit,
                                            .stop_at_end_tokens = !options.sampling.ignore_eos,
                                            .constraint = constraint ? &*constraint : nullptr,
                                            .observer = loaded.recorder.get(),
                                            .drafts = speculative_options(options.drafts)},
                                           emit);
    write_answer("\n");
    report_end(stats, options, *loaded.engine);
    return stats.stop;
}

GenerationStats answer(ChatSession& session, LoadedForRun& loaded, const RunOptions& options,
                       const std::string& text) {
    const auto emit = writing_and_saving(loaded, options);
    const GenerationStats stats =
        session.ask(text, *loaded.sampler, options.limit, {.content = emit, .reasoning = write_reasoning},
                    loaded.recorder.get(), loaded.grammar.get());
    write_answer("\n");
    report_end(stats, options, *loaded.engine);
    return stats;
}

constexpr const char* kChatHelp =
    "  /clear   forget the conversation\n"
    "  /exit    leave; so does the end of input\n"
    "  Ctrl-C   stop an answer; twice at the prompt: leave\n";

/// Reads one line; nothing at the end of input. Ctrl-C gives an empty line, a second one ends the chat.
std::optional<std::string> read_line(bool& interrupted_before) {
    if (isatty(STDERR_FILENO)) say("> ");
    clear_interrupt();
    errno = 0;
    std::string line;
    if (std::getline(std::cin, line)) {
        interrupted_before = false;
        return line;
    }
    if (!interrupt_requested() || interrupted_before || ending_signal() != 0) return std::nullopt;
    interrupted_before = true;
    std::cin.clear();
    std::clearerr(stdin);
    say("\ncoterie: Ctrl-C again or /exit to leave\n");
    return std::string();
}

/// What the next question would meet again.
bool ends_the_chat(ErrorCode code) {
    return code == ErrorCode::Internal || code == ErrorCode::Io || code == ErrorCode::InvalidFile;
}

void chat(ChatSession& session, LoadedForRun& loaded, const RunOptions& options) {
    if (isatty(STDERR_FILENO))
        say(fmt::format("coterie: {} is ready; /help lists commands\n", loaded.archive->name()));
    bool interrupted_before = false;
    while (const std::optional<std::string> line = read_line(interrupted_before)) {
        if (line->empty()) continue;
        if (*line == "/exit") return;
        if (*line == "/help") {
            say(kChatHelp);
        } else if (*line == "/clear") {
            session.clear();
        } else {
            try {
                static_cast<void>(answer(session, loaded, options, *line));
            } catch (const Error& error) {
                if (ends_the_chat(error.code())) throw;
                // One turn is over, the chat goes on.
                log::error(
                    "{}{}", error.what(),
                    error.code() == ErrorCode::InvalidArgument ? "; /clear forgets the conversation" : "");
            }
        }
    }
}

/// Answers the prompt, or all of a chat; why the last answer stopped.
StopReason converse(LoadedForRun& loaded, const RunOptions& options,
                    const std::optional<std::string>& prompt) {
    if (options.raw) return complete(loaded, options, *prompt);
    ChatSession session(*loaded.engine, *loaded.tokenizer,
                        load_chat_template(loaded.worker, *loaded.archive, *loaded.tokenizer, options.chat),
                        options.chat.system_prompt, speculative_options(options.drafts));
    if (prompt) return answer(session, loaded, options, *prompt).stop;
    chat(session, loaded, options);
    return StopReason::EndToken;
}

void run(RunOptions options) {
    const std::optional<std::string> prompt = given_prompt(options);
    if (!options.system_prompt_file.empty())
        options.chat.system_prompt = read_text_file(options.system_prompt_file);
    if (options.raw && !prompt) {
        fail(ErrorCode::InvalidArgument, "-no-cnv completes a prompt; give one with -p or -f");
    }
    if (!options.trace.empty() &&
        speculative_options(options.drafts).source != speculative::DraftSource::None) {
        fail(ErrorCode::InvalidArgument,
             "--trace records what a text uses, which drafts would mix with guesses; leave --spec-type out");
    }
    LoadedForRun loaded(options);
    const InterruptGuard interrupts;
    const StopReason stop = converse(loaded, options, prompt);
    if (loaded.recorder) loaded.recorder->finish();
    save_profile(*loaded.engine, options.model.offload, SaveProfile::Now);
    if (const int signal = ending_signal())
        fail(ErrorCode::Cancelled, "ended by {}", signal == SIGTERM ? "SIGTERM" : "SIGHUP");
    if (stop == StopReason::Interrupted) fail(ErrorCode::Cancelled, "interrupted");
}

}  // namespace

void add_run(CLI::App& root, Action& action) {
    CLI::App* command = root.add_subcommand("run", "Answer one prompt (-p) or chat");
    const auto options = std::make_shared<RunOptions>();
    const char* const group = "Run";
    command->add_option("prompt,-p,--prompt", options->prompt, "what to answer; without it: a chat")
        ->group(group);
    command->add_option("-f,--file", options->prompt_file, "read the prompt from a file; -: standard input")
        ->group(group);
    command
        ->add_option("-n,--n-predict,--predict", options->limit,
                     "tokens to generate at most; -1: until the end")
        ->check(whole_number(-2, std::int64_t{1} << 31))  // llama.cpp's -2 fills the context: the end too
        ->capture_default_str()
        ->group(group);
    command
        ->add_flag("--no-conversation", options->raw,
                   "-no-cnv: complete the raw prompt, without a chat template")
        ->group(group);
    CLI::Option* system = command->add_option("--system-prompt", options->chat.system_prompt,
                                              "-sys: text of the system message");
    system->group(group);
    command
        ->add_option("--system-prompt-file", options->system_prompt_file,
                     "-sysf: reads it from a file; -: standard input")
        ->excludes(system)
        ->group(group);
    command
        ->add_option("--chat-template", options->chat.template_flag,
                     "a built-in template's name, or Jinja text")
        ->group(group);
    command->add_option("--chat-template-file", options->chat.template_file, "Jinja template to use")
        ->group(group);
    command
        ->add_option("--python", options->chat.python, "interpreter with jinja2; default: /usr/bin/python3")
        ->envname(environment::kPython)
        ->group(group);
    command
        ->add_flag("--escape,-e,!--no-escape", options->escapes,
                   "turn \\n, \\t ... of -p into characters (default)")
        ->group(group);
    command->add_flag("--stats", options->stats, "say at the end how long it took")->group(group);
    command->add_option("--trace", options->trace, "record which experts are used, for coterie replay")
        ->group(group);
    for (const char* accepted : {"--conversation", "--jinja", "--no-display-prompt", "--simple-io",
                                 "--no-warmup", "--single-turn", "--color", "--interactive"}) {
        command->add_flag(std::string(accepted), options->accepted, "as it is anyway")->group(kHiddenGroup);
    }
    add_model_flags(*command, options->model);
    add_offload_flags(*command, options->model.offload);
    add_sampling_flags(*command, options->sampling);
    add_speculative_flags(*command, options->drafts);
    add_grammar_flags(*command, options->grammar);
    command->footer(
        "Examples:\n"
        "  coterie run \"What is a volcano?\"\n"
        "  coterie run -m model.gguf -c 8192 --temp 0\n"
        "  coterie run -m model.gguf -no-cnv -p \"Once upon a time\" -n 100");
    command->callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace coterie::cli
