#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "sampling/log_probabilities.h"
#include "tokenizer/tokenizer.h"

/// What a scheduler tells whoever asked. Every answer gets Started, then PromptProgress and Text in any
/// number, and one of Finished and Failed as its last.
namespace coterie::scheduler {

/// A slot was free: the prompt is read from `cached_tokens` on.
struct Started {
    int slot;
    std::int64_t prompt_tokens;
    std::int64_t cached_tokens;  ///< of the prompt, not computed again
};

struct PromptProgress {
    std::int64_t total;
    std::int64_t cached;
    std::int64_t processed;  ///< cached ones included
    double seconds;
};

/// A token as it was drawn.
struct GeneratedToken {
    TokenId id;
    double log_probability;                ///< the model's own, before samplers; 0 unless asked for
    std::vector<TokenLogProbability> top;  ///< best first
    std::size_t text_end;                  ///< bytes of the answer up to and with this token
};

/// More of the answer: well-formed UTF-8, without what may still become a stop text.
struct Text {
    std::string text;
    std::vector<GeneratedToken> tokens;  ///< only where asked for
};

enum class FinishReason {
    EndToken,
    StopText,
    Length,  ///< max_tokens, or the context is full
    TimeLimit,
    Cancelled,
};

/// What an answer took. Times are seconds.
struct Usage {
    std::int64_t prompt_tokens = 0;
    std::int64_t cached_tokens = 0;  ///< of the prompt, taken from the prefix cache
    std::int64_t generated_tokens = 0;
    std::int64_t drafted_tokens = 0;
    std::int64_t accepted_tokens = 0;  ///< of the drafted ones, which the answer has
    double queue_seconds = 0.0;
    double prompt_seconds = 0.0;
    double generation_seconds = 0.0;
};

struct Finished {
    FinishReason reason = FinishReason::EndToken;
    std::string stop_text;  ///< which one, with StopText
    Usage usage;
    std::vector<float> embedding;  ///< of an embedding request
};

struct Failed {
    ErrorCode code;
    std::string message;
};

using Event = std::variant<Started, PromptProgress, Text, Finished, Failed>;

inline bool is_last(const Event& event) {
    return std::holds_alternative<Finished>(event) || std::holds_alternative<Failed>(event);
}

}  // namespace coterie::scheduler
