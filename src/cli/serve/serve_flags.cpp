#include "cli/serve/serve_flags.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/error.h"
#include "cli/environment.h"
#include "cli/flag_values.h"
#include "cli/offload.h"

namespace coterie::cli {
namespace {

/// Recurrent states that a kept sequence may hold besides its own (EngineOptions::snapshots).
constexpr std::uint64_t kStatesOfASequence = 9;

void add_address_flags(CLI::App& command, ServeFlags& flags) {
    const char* const group = "Server";
    command.add_option("--host", flags.host, "address to listen on")->capture_default_str()->group(group);
    command.add_option("--port", flags.port, "0: any free one")
        ->check(whole_number(0, 65535))
        ->capture_default_str()
        ->group(group);
    command.add_option("--api-key", flags.keys, "key that clients must show; may be repeated")
        ->envname(environment::kApiKey)
        ->delimiter(',')
        ->group(group);
    command.add_option("--api-key-file", flags.key_file, "file of such keys, one a line")->group(group);
    command.add_flag("--no-key-needed", flags.no_key_needed, "let others in without a key, on any address")
        ->group(group);
    command
        .add_option(
            "--allowed-host", flags.allowed_hosts,
            "name under which the server may be called without a key, besides addresses and localhost")
        ->group(group);
    command.add_option("--cors", flags.cors, "origin whose pages may call, like https://app.example; *: all")
        ->group(group);
    command.add_option("--ssl-cert-file", flags.certificate_file, "PEM certificate chain: serve https")
        ->group(group);
    command.add_option("--ssl-key-file", flags.key_of_certificate, "PEM key of the certificate")
        ->group(group);
    command
        .add_option("--timeout", flags.timeout_seconds,
                    "-to: seconds that a client may keep silent in a request")
        ->check(whole_number(1, 1 << 20))
        ->capture_default_str()
        ->group(group);
    command.add_option("--body-limit", flags.body_mebibytes, "MiB of a request at most")
        ->check(whole_number(1, 4096))
        ->capture_default_str()
        ->group(group);
    command.add_option("--connections", flags.connections, "at the same time")
        ->check(whole_number(1, 1 << 16))
        ->capture_default_str()
        ->group(group);
}

void add_scheduling_flags(CLI::App& command, ServeFlags& flags) {
    const char* const group = "Scheduling";
    const auto number = [&](const char* names, int& value, const char* help, std::int64_t least) {
        command.add_option(names, value, help)
            ->check(whole_number(least, 1 << 24))
            ->capture_default_str()
            ->group(group);
    };
    command.add_option("--parallel", flags.slots, "-np: answers written at the same time")
        ->check(whole_number(1, 256))
        ->capture_default_str()
        ->group(group);
    number("--queue", flags.queue, "requests that may wait; more are told to come back later", 0);
    number("--keep", flags.kept, "conversations kept so that they need not be read again; 0: none", 0);
    number("--cache-ram", flags.kept_mebibytes, "MiB for recurrent states of kept conversations", 0);
    number("--prompt-delay", flags.step_milliseconds,
           "milliseconds that answers may wait for a part of a prompt", 1);
    number("--request-timeout", flags.request_seconds, "seconds that a request may take in all; 0: no limit",
           0);
    number("--drain-timeout", flags.drain_seconds, "seconds that running answers get after SIGTERM", 0);
}

void add_service_flags(CLI::App& command, ServeFlags& flags) {
    const char* const group = "Answers";
    command.add_option("-a,--alias", flags.alias, "the model's name for clients")->group(group);
    command
        .add_option("-n,--n-predict,--predict", flags.max_tokens,
                    "tokens of an answer where a request says nothing")
        ->capture_default_str()
        ->group(group);
    command
        .add_option("--chat-template", flags.chat.template_flag, "a built-in template's name, or Jinja text")
        ->group(group);
    command.add_option("--chat-template-file", flags.chat.template_file, "Jinja template to use")
        ->group(group);
    command
        .add_option("--tool-format", flags.tool_format,
                    "how the model writes calls, if the template does not say")
        ->group(group);
    command.add_option("--python", flags.chat.python, "interpreter with jinja2; default: /usr/bin/python3")
        ->envname(environment::kPython)
        ->group(group);
    command.add_option("--pooling", flags.pooling, "of embeddings: mean or last")
        ->capture_default_str()
        ->group(group);
    command.add_option("--slot-save-path", flags.slot_folder, "folder where slots may be saved")
        ->group(group);
    command.add_flag("--metrics", flags.metrics, "serve /metrics for Prometheus")->group(group);
    for (const char* accepted : {"--jinja", "--cont-batching", "--embeddings", "--embedding", "--slots",
                                 "--props", "--no-webui", "--no-warmup", "--cache-prompt", "--kv-unified"}) {
        command.add_flag(std::string(accepted), flags.accepted, "as it is anyway")->group(kHiddenGroup);
    }
}

}  // namespace

void add_serve_flags(CLI::App& command, ServeFlags& flags) {
    add_address_flags(command, flags);
    add_scheduling_flags(command, flags);
    add_service_flags(command, flags);
    add_model_flags(command, flags.model);
    add_offload_flags(command, flags.model.offload);
    add_sampling_flags(command, flags.sampling);
    add_speculative_flags(command, flags.drafts);
}

server::ServerOptions server_options(const ServeFlags& flags) {
    server::ServerOptions options;
    options.host = flags.host;
    options.port = flags.port;
    options.gate.keys = flags.keys;
    if (!flags.key_file.empty()) {
        for (std::string& key : server::read_key_file(flags.key_file))
            options.gate.keys.push_back(std::move(key));
    }
    for (const std::string& key : options.gate.keys) {
        if (key.empty()) fail(ErrorCode::InvalidArgument, "--api-key: a key must not be empty");
    }
    options.gate.allowed_hosts = flags.allowed_hosts;
    options.gate.cors_origins = flags.cors;
    options.open_to_all = flags.no_key_needed;
    options.certificate_file = flags.certificate_file;
    options.key_file = flags.key_of_certificate;
    options.limits.body_bytes = static_cast<std::size_t>(flags.body_mebibytes) << 20;
    options.limits.connections = flags.connections;
    options.limits.body_time = options.limits.write_time = std::chrono::seconds(flags.timeout_seconds);
    return options;
}

scheduler::SchedulerOptions scheduler_options(const ServeFlags& flags, std::uint64_t recurrent_bytes) {
    scheduler::SchedulerOptions options;
    options.slots = flags.slots;
    options.queue_limit = static_cast<std::size_t>(flags.queue);
    options.kept_sequences = static_cast<std::size_t>(flags.kept);
    if (recurrent_bytes > 0) {
        const std::uint64_t bytes = static_cast<std::uint64_t>(flags.kept_mebibytes) << 20;
        options.kept_sequences =
            std::min<std::uint64_t>(options.kept_sequences, bytes / (recurrent_bytes * kStatesOfASequence));
    }
    options.longest_step = std::chrono::milliseconds(flags.step_milliseconds);
    options.request_limit = std::chrono::seconds(flags.request_seconds);
    options.drafts = speculative_options(flags.drafts);
    return options;
}

server::ServiceOptions service_options(const ServeFlags& flags) {
    server::ServiceOptions options;
    options.sampling = sampling_options(flags.sampling);
    options.ignore_end = flags.sampling.ignore_eos;
    options.max_tokens = flags.max_tokens;
    options.metrics = flags.metrics;
    options.slot_folder = flags.slot_folder;
    if (!flags.slot_folder.empty() && !std::filesystem::is_directory(flags.slot_folder)) {
        fail(ErrorCode::NotFound, "--slot-save-path {}: there is no such folder", flags.slot_folder);
    }
    if (flags.pooling != "mean" && flags.pooling != "last") {
        fail(ErrorCode::InvalidArgument, "--pooling {}: must be mean or last", flags.pooling);
    }
    options.pooling = flags.pooling == "last" ? scheduler::Pooling::Last : scheduler::Pooling::Mean;
    if (!flags.tool_format.empty()) options.tool_format = parse_tool_format(flags.tool_format);
    return options;
}

}  // namespace coterie::cli
