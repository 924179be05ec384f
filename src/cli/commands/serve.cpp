#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fmt/core.h>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/standard_streams.h"
#include "cli/command.h"
#include "cli/offload.h"
#include "cli/serve/serve_flags.h"
#include "cli/serve/signals.h"
#include "scheduler/scheduler.h"

namespace coterie::cli {
namespace {

server::ModelFacts facts_of(const engine::Engine& engine, const ServeFlags& flags) {
    const models::ModelConfig& config = engine.config();
    server::ModelFacts facts;
    facts.name = config.name.empty() ? engine.archive().name() : config.name;
    facts.id = flags.alias.empty() ? facts.name : flags.alias;
    facts.architecture = config.architecture;
    facts.created =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    facts.context = engine.context();
    facts.trained_context = config.context;
    facts.vocabulary = config.vocabulary;
    facts.embedding = config.embedding;
    facts.layers = config.layers;
    facts.experts = config.experts;
    facts.experts_used = config.experts_used;
    facts.bytes = engine.archive().total_bytes();
    return facts;
}

/// What a server needs, loaded while its port already tells that it is loading.
struct LoadedForServing {
    LoadedForServing(const ServeFlags& flags, const EndSignals& signals)
        : worker(std::make_shared<TemplateWorker>(worker_options(flags.chat))) {
        worker->prepare();
        const auto go_on = [&] {
            if (signals.requested()) fail(ErrorCode::Cancelled, "stopped while loading");
        };
        archive = open_archive(flags.model);
        tokenizer = load_tokenizer(*archive, flags.model);
        engine = load_engine(archive, flags.model, go_on);
        engine::Engine& loaded = *engine;
        scheduler = std::make_unique<scheduler::Scheduler>(
            loaded, *tokenizer, scheduler_options(flags, loaded.recurrent_bytes()),
            [&loaded, &flags] { save_profile(loaded, flags.model.offload, SaveProfile::IfDue); });
        auto [chat_template, reason] = find_template(flags);
        service = std::make_unique<server::Service>(
            server::Service::Parts{*tokenizer, std::move(chat_template), reason, *scheduler,
                                   facts_of(loaded, flags), service_options(flags)});
    }

    static WorkerOptions worker_options(const ChatOptions& chat) {
        WorkerOptions options;
        if (!chat.python.empty()) options.python = chat.python;
        return options;
    }

    /// A model without a template still completes texts; a template that does not work is an error.
    std::pair<std::optional<ChatTemplate>, std::string> find_template(const ServeFlags& flags) {
        try {
            return {load_chat_template(worker, *archive, *tokenizer, flags.chat), std::string()};
        } catch (const Error& error) {
            const bool asked = flags.chat.template_flag || !flags.chat.template_file.empty();
            if (error.code() != ErrorCode::InvalidArgument || asked) throw;
            log::warn("chat is off: {}", error.what());
            return {std::nullopt, error.what()};
        }
    }

    std::shared_ptr<TemplateWorker> worker;
    std::shared_ptr<const gguf::Archive> archive;
    std::unique_ptr<Tokenizer> tokenizer;
    std::unique_ptr<engine::Engine> engine;
    std::unique_ptr<scheduler::Scheduler> scheduler;
    std::unique_ptr<server::Service> service;
};

void end(LoadedForServing& loaded, server::Server& server, const ServeFlags& flags) {
    say(fmt::format("coterie: ending; running answers have {} s, another signal ends at once\n",
                    flags.drain_seconds));
    server.close();
    if (!loaded.scheduler->drain(std::chrono::seconds(flags.drain_seconds))) {
        log::warn("some answers were cut off");
    }
}

void serve(const ServeFlags& flags) {
    EndSignals signals;
    std::optional<LoadedForServing> loaded;
    {
        server::Server server(server_options(flags));
        try {
            loaded.emplace(flags, signals);
        } catch (const Error& error) {
            if (error.code() == ErrorCode::Cancelled && signals.requested()) return;
            throw;
        }
        server.begin(*loaded->service);
        fmt::print("coterie: serving {} at {}\n", loaded->service->facts().id, server.url());
        std::fflush(stdout);
        signals.wait();
        end(*loaded, server, flags);
    }
    loaded->scheduler.reset();  // nobody else uses the engine now
    save_profile(*loaded->engine, flags.model.offload, SaveProfile::Now);
}

}  // namespace

void add_serve(CLI::App& root, Action& action) {
    CLI::App* command =
        root.add_subcommand("serve", "Serve the model to OpenAI and Anthropic clients over HTTP");
    const auto flags = std::make_shared<ServeFlags>();
    add_serve_flags(*command, *flags);
    command->footer(
        "Examples:\n"
        "  coterie serve -m model.gguf -c 32768 -np 4\n"
        "  coterie serve -m model.gguf --host 0.0.0.0 --api-key-file keys.txt --metrics");
    command->callback([flags, &action] { action = [flags] { serve(*flags); }; });
}

}  // namespace coterie::cli
