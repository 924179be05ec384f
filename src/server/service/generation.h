#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sampling/sampling_options.h"
#include "scheduler/answer.h"
#include "scheduler/request.h"
#include "server/json/fields.h"
#include "server/service/service.h"

namespace coterie::server {

/// How a request wants its answers drawn and told. The same fields on every route that generates.
struct Generation {
    SamplingOptions sampling;
    std::int64_t max_tokens = -1;
    int answers = 1;  ///< `n`
    std::vector<std::string> stop;
    bool ignore_end = false;
    std::int64_t top_log_probabilities = -1;  ///< -1: none

    bool stream = false;
    bool include_usage = false;
    bool return_progress = false;

    bool cache_prompt = true;
    std::optional<int> slot;
    std::chrono::milliseconds generation_limit{0};
    std::string client;  ///< who asks
};

/// Reads the fields that llama-server and OpenAI's API have in common or of their own; throws ApiError that
/// names a field. `logprobs` differs between the routes and is read there.
Generation read_generation(const Fields& fields, const Service& service, const std::string& client);

/// A request to the scheduler for answer number `index` of a request of ours (seeds of a request's answers
/// differ), held to a constraint or not (null). An answer that ignores ends still ends where its constraint
/// allows nothing else.
scheduler::Request make_request(const Generation& generation, const Service& service,
                                const std::vector<TokenId>& prompt, int index,
                                std::unique_ptr<scheduler::TokenConstraint> constraint);

/// Hands in all parts of a request, or none of them. Throws ApiError: 429 where the queue is full, 503 where
/// the server shuts down, 400 with the numbers where a prompt is too long.
scheduler::Answers submit(std::vector<scheduler::Request> parts, const Service& service);

}  // namespace coterie::server
