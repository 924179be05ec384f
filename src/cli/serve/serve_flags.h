#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/chat_session.h"
#include "cli/model_options.h"
#include "cli/sampling_flags.h"
#include "cli/speculative_flags.h"
#include "scheduler/options.h"
#include "server/server.h"
#include "server/service/service.h"

namespace CLI {
class App;
}

namespace coterie::cli {

/// The flags of `coterie serve`, named as llama-server's wherever it has one.
struct ServeFlags {
    ModelOptions model;
    SamplingFlags sampling;
    SpeculativeFlags drafts;
    ChatOptions chat;

    std::string host = "127.0.0.1";
    int port = 8080;
    std::vector<std::string> keys;
    std::string key_file;
    bool no_key_needed = false;
    std::vector<std::string> allowed_hosts;
    std::vector<std::string> cors;
    std::string certificate_file;
    std::string key_of_certificate;
    std::int64_t body_mebibytes = 64;
    int connections = 256;
    int timeout_seconds = 30;

    int slots = 4;
    int queue = 64;
    int kept = 32;
    int kept_mebibytes = 2048;
    int step_milliseconds = 200;
    int request_seconds = 0;
    int drain_seconds = 30;

    std::string alias;
    std::string slot_folder;
    std::string pooling = "mean";
    std::string tool_format;
    std::int64_t max_tokens = -1;
    bool metrics = false;
    bool accepted = false;  ///< target of llama-server's flags that say what holds anyway
};

void add_serve_flags(CLI::App& command, ServeFlags& flags);

/// What the flags ask of each part. Throw InvalidArgument naming the flag.
server::ServerOptions server_options(const ServeFlags& flags);
scheduler::SchedulerOptions scheduler_options(const ServeFlags& flags, std::uint64_t recurrent_bytes);
server::ServiceOptions service_options(const ServeFlags& flags);

}  // namespace coterie::cli
