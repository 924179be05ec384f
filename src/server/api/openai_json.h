#pragma once

#include <string>
#include <vector>

#include "scheduler/event.h"
#include "server/json/json.h"
#include "server/service/service.h"

/// Pieces of JSON that OpenAI's routes have in common.
namespace coterie::server {

/// "chatcmpl-" and 24 random characters.
std::string random_id(const std::string& prefix);
std::int64_t unix_time();

/// Adds the usage of another answer to the same prompt.
void add_usage(scheduler::Usage& sum, const scheduler::Usage& other);
/// Adds what the answers to another prompt took.
void add_prompt_usage(scheduler::Usage& sum, const scheduler::Usage& other);
Json usage_json(const scheduler::Usage& usage);
/// As llama-server tells them: tokens and milliseconds of prompt and answer.
Json timings_json(const scheduler::Usage& usage);

/// "stop", "length" or "tool_calls".
std::string finish_word(scheduler::FinishReason reason, std::size_t calls);

/// choices[].logprobs of a chat: {"content": [...]}.
Json chat_log_probabilities(const std::vector<scheduler::GeneratedToken>& tokens, const Tokenizer& tokenizer);

Json progress_json(const scheduler::PromptProgress& progress);

/// A line of an event stream.
std::string sse(const Json& data);
std::string sse(const std::string& event, const Json& data);
inline constexpr const char* kEventStream = "text/event-stream";
inline constexpr const char* kSseDone = "data: [DONE]\n\n";

/// What a stream says where its answer fails.
Json stream_error(const std::exception& error);

}  // namespace coterie::server
