#include "tokenizer/vocabulary/stop_tokens.h"

#include <algorithm>
#include <array>

#include "tokenizer/vocabulary/vocabulary.h"

namespace coterie {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMessageEnd = "<|end|>";
// Between full-width bars (U+FF5C), words joined by lower-eighth blocks (U+2581).
constexpr std::string_view kDeepSeekEnd = "<\uFF5Cend\u2581of\u2581sentence\uFF5C>";

constexpr std::array kStopTexts = {
    "<|eot_id|>"sv,
    "<|im_end|>"sv,
    kMessageEnd,
    "<|return|>"sv,
    "<|call|>"sv,
    "<|flush|>"sv,
    "<|calls|>"sv,
    "<end_of_turn>"sv,
    "<|endoftext|>"sv,
    "</s>"sv,
    "<|eom_id|>"sv,
    "<EOT>"sv,
    "_<EOT>"sv,
    "[EOT]"sv,
    "[EOS]"sv,
    "<|end_of_text|>"sv,
    "<end_of_utterance>"sv,
    "<eos>"sv,
    "<turn|>"sv,
    "<|tool_response>"sv,
    kDeepSeekEnd,
    "[e~["sv,
};

constexpr std::array kTurnEnds = {
    "<|eot_id|>"sv, "<|im_end|>"sv, kMessageEnd, "<end_of_turn>"sv, "<|endoftext|>"sv,
    "<EOT>"sv,      "_<EOT>"sv,     "[EOT]"sv,   kDeepSeekEnd,      "<end_of_utterance>"sv,
};

constexpr std::array kHarmonyStructure = {"<|channel|>"sv, "<|message|>"sv, "<|start|>"sv, "<|constrain|>"sv};

// Marks of thoughts and calls that are control tokens in some files (Mistral's, DeepSeek's).
constexpr std::array kAnswerMarks = {
    "[TOOL_CALLS]"sv,
    "[ARGS]"sv,
    "[CALL_ID]"sv,
    "[THINK]"sv,
    "[/THINK]"sv,
    "<think>"sv,
    "</think>"sv,
    "<tool_call>"sv,
    "</tool_call>"sv,
    "<arg_key>"sv,
    "</arg_key>"sv,
    "<arg_value>"sv,
    "</arg_value>"sv,
    "<\uFF5Ctool\u2581calls\u2581begin\uFF5C>"sv,
    "<\uFF5Ctool\u2581calls\u2581end\uFF5C>"sv,
    "<\uFF5Ctool\u2581call\u2581begin\uFF5C>"sv,
    "<\uFF5Ctool\u2581call\u2581end\uFF5C>"sv,
    "<\uFF5Ctool\u2581sep\uFF5C>"sv,
};

bool has_both(const Vocabulary& vocabulary, std::string_view first, std::string_view second) {
    return vocabulary.find(first) && vocabulary.find(second);
}

bool is_harmony(const Vocabulary& vocabulary) { return has_both(vocabulary, "<|return|>", "<|call|>"); }

/// Whether `<|end|>` ends a message only, and the model goes on.
bool goes_on_after_message(const Vocabulary& vocabulary) {
    return is_harmony(vocabulary) || has_both(vocabulary, "<|calls|>", "<|flush|>");
}

}  // namespace

std::span<const std::string_view> stop_texts() { return kStopTexts; }

std::optional<TokenId> guess_end_of_turn(const Vocabulary& vocabulary) {
    for (const std::string_view text : kTurnEnds) {
        if (text == kMessageEnd && goes_on_after_message(vocabulary)) continue;
        if (const auto id = vocabulary.find(text)) return id;
    }
    return std::nullopt;
}

std::vector<TokenId> find_stop_tokens(const Vocabulary& vocabulary) {
    std::vector<TokenId> stops;
    const auto add = [&](std::optional<TokenId> id) {
        if (id) stops.push_back(*id);
    };
    const SpecialTokenIds& special = vocabulary.special();
    for (const auto& id : {special.eos, special.eot, special.eom, special.fim_padding, special.fim_repository,
                           special.fim_file_separator}) {
        add(id);
    }
    for (const std::string_view text : kStopTexts) add(vocabulary.find(text));

    if (goes_on_after_message(vocabulary)) {
        if (const auto message_end = vocabulary.find(kMessageEnd)) std::erase(stops, *message_end);
    }
    std::sort(stops.begin(), stops.end());
    stops.erase(std::unique(stops.begin(), stops.end()), stops.end());
    return stops;
}

std::span<const std::string_view> shown_control_texts(const Vocabulary& vocabulary) {
    if (is_harmony(vocabulary)) return kHarmonyStructure;
    return kAnswerMarks;
}

}  // namespace coterie
