#include <memory>
#include <nlohmann/json.hpp>

#include "server/api/endpoints.h"
#include "server/api/openai_json.h"
#include "server/chat/answer_constraint.h"
#include "server/chat/format_wish.h"
#include "server/json/api_error.h"
#include "server/json/parse.h"
#include "server/service/answer_reader.h"
#include "server/service/generation.h"
#include "server/service/prompts.h"

namespace coterie::server {
namespace {

constexpr std::int64_t kMostProbabilities = 100;

/// llama-server's own completion: one prompt and one answer, on its way out.
struct NativeCompletion {
    Service& service;
    Generation generation;
    std::string prompt;  ///< as text
    bool return_tokens;
    AnswerReader reader;
};

const char* stop_type(scheduler::FinishReason reason) {
    switch (reason) {
        case scheduler::FinishReason::EndToken:
            return "eos";
        case scheduler::FinishReason::StopText:
            return "word";
        case scheduler::FinishReason::Length:
        case scheduler::FinishReason::TimeLimit:
            return "limit";
        case scheduler::FinishReason::Cancelled:
            break;
    }
    return "none";
}

Json settings_json(const Generation& generation) {
    return {{"n_predict", generation.max_tokens},
            {"seed", generation.sampling.seed},
            {"temperature", generation.sampling.temperature},
            {"top_k", generation.sampling.top_k},
            {"top_p", generation.sampling.top_p},
            {"min_p", generation.sampling.min_p},
            {"stop", generation.stop},
            {"ignore_eos", generation.ignore_end},
            {"stream", generation.stream}};
}

/// What a piece of the answer says; the whole answer is one piece.
Json piece_json(const NativeCompletion& completion, const std::string& text,
                const std::vector<scheduler::GeneratedToken>& tokens) {
    Json piece = {{"index", 0}, {"content", text}, {"tokens", Json::array()}, {"stop", false}};
    if (completion.return_tokens) {
        for (const scheduler::GeneratedToken& token : tokens) piece["tokens"].push_back(token.id);
    }
    if (completion.generation.top_log_probabilities >= 0) {
        piece["completion_probabilities"] =
            chat_log_probabilities(tokens, completion.service.tokenizer())["content"];
    }
    return piece;
}

void add_end(Json& piece, const NativeCompletion& completion, const scheduler::Finished& finished) {
    piece.update({{"stop", true},
                  {"model", completion.service.facts().id},
                  {"tokens_predicted", finished.usage.generated_tokens},
                  {"tokens_evaluated", finished.usage.prompt_tokens},
                  {"truncated", false},  // a prompt that does not fit is refused
                  {"stop_type", stop_type(finished.reason)},
                  {"stopping_word", finished.stop_text},
                  {"timings", timings_json(finished.usage)},
                  {"prompt", completion.prompt},
                  {"generation_settings", settings_json(completion.generation)}});
}

std::string content_of(const AnswerPiece& piece) {
    std::string text;
    for (const AnswerEvent& event : piece.events) text += event.text;
    return text;
}

HttpResponse answer_whole(NativeCompletion completion) {
    std::string text;
    std::vector<scheduler::GeneratedToken> tokens;
    scheduler::Finished finished;
    while (auto delta = completion.reader.next()) {
        if (auto* piece = std::get_if<AnswerPiece>(&delta->what)) {
            text += content_of(*piece);
            for (auto& token : piece->tokens) tokens.push_back(std::move(token));
        } else if (auto* end = std::get_if<AnswerEnd>(&delta->what)) {
            finished = std::move(end->finished);
        }
    }
    Json body = piece_json(completion, text, tokens);
    add_end(body, completion, finished);
    return {.body = dump(body)};
}

void write_stream(NativeCompletion completion, StreamWriter& writer) {
    while (auto delta = completion.reader.next([&] { writer.write(": waiting\n\n"); })) {
        Json data = piece_json(completion, "", {});
        if (auto* piece = std::get_if<AnswerPiece>(&delta->what)) {
            data = piece_json(completion, content_of(*piece), piece->tokens);
        } else if (auto* end = std::get_if<AnswerEnd>(&delta->what)) {
            add_end(data, completion, end->finished);
        } else {
            auto* progress = std::get_if<scheduler::PromptProgress>(&delta->what);
            if (!progress || !completion.generation.return_progress) continue;
            data["prompt_progress"] = progress_json(*progress);
        }
        writer.write(sse(data));
    }
}

HttpResponse answer_stream(NativeCompletion completion) {
    const auto shared = std::make_shared<std::optional<NativeCompletion>>(std::move(completion));
    return {.content_type = kEventStream,
            .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
            .stream = [shared](StreamWriter& writer) {
                try {
                    NativeCompletion taken = std::move(**shared);
                    shared->reset();
                    write_stream(std::move(taken), writer);
                } catch (const std::exception& error) {
                    writer.write(sse(stream_error(error)));
                }
            }};
}

HttpResponse complete_natively(const HttpRequest& request, Service& service) {
    const Json body = parse_object(request.body);
    const Fields fields(body);
    Generation generation = read_generation(fields, service, request.client());
    generation.answers = 1;
    const std::int64_t probabilities = fields.integer("n_probs", 0, kMostProbabilities).value_or(0);
    if (probabilities > 0) generation.top_log_probabilities = probabilities;
    const bool return_tokens = fields.boolean("return_tokens").value_or(false);
    const auto constraint = constrain(read_format(fields), {}, service);
    const std::vector<std::vector<TokenId>> prompts = read_prompts(fields, "prompt", service);
    if (prompts.size() != 1) refuse_field("prompt", "must be one text here; /v1/completions takes several");

    std::vector<scheduler::Request> parts;
    parts.push_back(
        make_request(generation, service, prompts.front(), 0, constraint ? constraint() : nullptr));
    parts.back().wants_tokens = return_tokens;
    AnswerReader reader(submit(std::move(parts), service), {}, request.present);
    NativeCompletion completion{service, std::move(generation), service.tokenizer().decode(prompts.front()),
                                return_tokens, std::move(reader)};
    return completion.generation.stream ? answer_stream(std::move(completion))
                                        : answer_whole(std::move(completion));
}

}  // namespace

void add_native_completion(Router& router, Service& service) {
    router.add("POST", "/completion", [&service](const HttpRequest& request, const std::string&) {
        return complete_natively(request, service);
    });
}

}  // namespace coterie::server
