#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sampling/sampler_chain.h"
#include "scheduler/constraint.h"
#include "tokenizer/tokenizer.h"

namespace coterie::scheduler {

struct Bell;

/// How the hidden states of a text become one vector.
enum class Pooling { Mean, Last };

/// One prompt to be continued, or to be turned into an embedding.
struct Request {
    std::vector<TokenId> prompt;  ///< not empty
    /// Draws the answer; has not been told of the prompt. Null for an embedding.
    std::unique_ptr<SamplerChain> sampler;
    std::unique_ptr<TokenConstraint> constraint;  ///< or null
    std::optional<Pooling> embedding;             ///< set: no answer is written

    std::int64_t max_tokens = -1;   ///< of the answer; -1: until it ends or the context is full
    std::vector<std::string> stop;  ///< texts that end the answer and are not part of it
    bool stop_at_end_tokens = true;
    std::int64_t top_log_probabilities = -1;  ///< -1: none; 0: only of the tokens drawn
    bool wants_tokens = false;                ///< events carry token ids

    std::shared_ptr<Bell> bell;  ///< rings when the reader gets something; not null

    bool reuse_prefix = true;
    std::optional<int> slot;                        ///< the slot to run in; empty: any
    std::string client;                             ///< who asks: clients take turns in the queue
    std::chrono::milliseconds limit{0};             ///< from submission to the end; 0: the scheduler's
    std::chrono::milliseconds generation_limit{0};  ///< from the first token on; 0: none
};

}  // namespace coterie::scheduler
