#include "server/api/openai_json.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "server/json/api_error.h"
#include "server/json/parse.h"

namespace coterie::server {
namespace {

Json bytes_of(std::string_view text) {
    Json bytes = Json::array();
    for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
    return bytes;
}

Json log_probability(TokenId id, double value, const Tokenizer& tokenizer) {
    const std::string_view text = tokenizer.piece(id);
    return {{"id", id}, {"token", text}, {"bytes", bytes_of(text)}, {"logprob", value}};
}

double rate(std::int64_t tokens, double seconds) {
    return seconds > 0.0 ? static_cast<double>(tokens) / seconds : 0.0;
}
double milliseconds_each(std::int64_t tokens, double seconds) {
    return tokens > 0 ? 1e3 * seconds / static_cast<double>(tokens) : 0.0;
}

void add_answers(scheduler::Usage& sum, const scheduler::Usage& other) {
    sum.generated_tokens += other.generated_tokens;
    sum.drafted_tokens += other.drafted_tokens;
    sum.accepted_tokens += other.accepted_tokens;
    sum.prompt_seconds = std::max(sum.prompt_seconds, other.prompt_seconds);
    sum.generation_seconds = std::max(sum.generation_seconds, other.generation_seconds);
}

}  // namespace

std::string random_id(const std::string& prefix) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    thread_local std::mt19937_64 random{std::random_device{}()};
    std::string id = prefix;
    for (int i = 0; i < 24; ++i) id += kLetters[random() % kLetters.size()];
    return id;
}

std::int64_t unix_time() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

void add_usage(scheduler::Usage& sum, const scheduler::Usage& other) {
    if (sum.prompt_tokens == 0) {
        sum = other;
        return;
    }
    sum.cached_tokens = std::min(sum.cached_tokens, other.cached_tokens);  // the prompt counts once
    add_answers(sum, other);
}

void add_prompt_usage(scheduler::Usage& sum, const scheduler::Usage& other) {
    sum.prompt_tokens += other.prompt_tokens;
    sum.cached_tokens += other.cached_tokens;
    add_answers(sum, other);
}

Json usage_json(const scheduler::Usage& usage) {
    return {{"prompt_tokens", usage.prompt_tokens},
            {"completion_tokens", usage.generated_tokens},
            {"total_tokens", usage.prompt_tokens + usage.generated_tokens},
            {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

Json timings_json(const scheduler::Usage& usage) {
    const std::int64_t read = usage.prompt_tokens - usage.cached_tokens;
    Json timings = {
        {"queue_ms", 1e3 * usage.queue_seconds},
        {"cache_n", usage.cached_tokens},
        {"prompt_n", read},
        {"prompt_ms", 1e3 * usage.prompt_seconds},
        {"prompt_per_token_ms", milliseconds_each(read, usage.prompt_seconds)},
        {"prompt_per_second", rate(read, usage.prompt_seconds)},
        {"predicted_n", usage.generated_tokens},
        {"predicted_ms", 1e3 * usage.generation_seconds},
        {"predicted_per_token_ms", milliseconds_each(usage.generated_tokens, usage.generation_seconds)},
        {"predicted_per_second", rate(usage.generated_tokens, usage.generation_seconds)}};
    if (usage.drafted_tokens > 0) {
        timings["draft_n"] = usage.drafted_tokens;
        timings["draft_n_accepted"] = usage.accepted_tokens;
    }
    return timings;
}

std::string finish_word(scheduler::FinishReason reason, std::size_t calls) {
    using scheduler::FinishReason;
    if (reason != FinishReason::EndToken && reason != FinishReason::StopText) return "length";
    return calls > 0 ? "tool_calls" : "stop";
}

Json chat_log_probabilities(const std::vector<scheduler::GeneratedToken>& tokens,
                            const Tokenizer& tokenizer) {
    Json content = Json::array();
    for (const scheduler::GeneratedToken& token : tokens) {
        Json entry = log_probability(token.id, token.log_probability, tokenizer);
        entry["top_logprobs"] = Json::array();
        for (const TokenLogProbability& other : token.top) {
            entry["top_logprobs"].push_back(log_probability(other.id, other.log_probability, tokenizer));
        }
        content.push_back(std::move(entry));
    }
    return {{"content", std::move(content)}};
}

Json progress_json(const scheduler::PromptProgress& progress) {
    return {{"total", progress.total},
            {"cache", progress.cached},
            {"processed", progress.processed},
            {"time_ms", static_cast<std::int64_t>(1e3 * progress.seconds)}};
}

std::string sse(const Json& data) { return "data: " + dump(data) + "\n\n"; }
std::string sse(const std::string& event, const Json& data) {
    return "event: " + event + "\ndata: " + dump(data) + "\n\n";
}

Json stream_error(const std::exception& error) {
    const auto* api = dynamic_cast<const ApiError*>(&error);
    const int status = api ? api->status() : 500;
    const Json code = api && !api->code().empty() ? Json(api->code()) : Json(status);
    return {{"error", {{"message", error.what()}, {"type", error_type(status)}, {"code", code}}}};
}

}  // namespace coterie::server
