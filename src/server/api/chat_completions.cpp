#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "server/api/endpoints.h"
#include "server/api/openai_json.h"
#include "server/chat/chat_input.h"
#include "server/json/api_error.h"
#include "server/json/parse.h"
#include "server/service/answer_reader.h"

namespace coterie::server {
namespace {

using Kind = AnswerEvent::Kind;

void read_log_probabilities(const Fields& fields, Generation& generation) {
    constexpr std::int64_t kMost = 100;
    const bool wanted = fields.boolean("logprobs").value_or(false);
    const auto top = fields.integer("top_logprobs", 0, kMost);
    if (top && *top > 0 && !wanted) refuse_field("top_logprobs", "needs logprobs to be true");
    if (wanted) generation.top_log_probabilities = top.value_or(0);
}

/// A chat's answers on their way out.
struct Chat {
    Service& service;
    Generation generation;
    AnswerReader reader;
    std::string id = random_id("chatcmpl-");
    std::int64_t created = unix_time();

    bool tells_probabilities() const { return generation.top_log_probabilities >= 0; }
    Json head(const char* object) const {
        return {{"id", id}, {"object", object}, {"created", created}, {"model", service.facts().id}};
    }
};

Json call_json(const ParsedCall& call) {
    return {{"id", call.id},
            {"type", "function"},
            {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

Json message_json(const ParsedAnswer& answer) {
    Json message = {{"role", "assistant"}};
    message["content"] = answer.content.empty() && !answer.calls.empty() ? Json() : Json(answer.content);
    if (!answer.reasoning.empty()) message["reasoning_content"] = answer.reasoning;
    for (const ParsedCall& call : answer.calls) message["tool_calls"].push_back(call_json(call));
    return message;
}

/// Everything that one answer said.
struct Collected {
    std::vector<AnswerEvent> events;
    std::vector<scheduler::GeneratedToken> tokens;
    std::string finish;
};

Json choice_json(const Chat& chat, std::size_t index, const Collected& answer) {
    const Json probabilities =
        chat.tells_probabilities() ? chat_log_probabilities(answer.tokens, chat.service.tokenizer()) : Json();
    return {{"index", index},
            {"message", message_json(collect(answer.events))},
            {"logprobs", probabilities},
            {"finish_reason", answer.finish}};
}

void append(std::vector<AnswerEvent>& to, std::vector<AnswerEvent>& from) {
    for (AnswerEvent& event : from) to.push_back(std::move(event));
}

HttpResponse answer_whole(Chat chat) {
    std::vector<Collected> answers(static_cast<std::size_t>(chat.generation.answers));
    scheduler::Usage usage;
    while (auto delta = chat.reader.next()) {
        Collected& answer = answers[delta->answer];
        if (auto* piece = std::get_if<AnswerPiece>(&delta->what)) {
            append(answer.events, piece->events);
            for (auto& token : piece->tokens) answer.tokens.push_back(std::move(token));
        } else if (auto* end = std::get_if<AnswerEnd>(&delta->what)) {
            append(answer.events, end->events);
            answer.finish = finish_word(end->finished.reason, end->calls);
            add_usage(usage, end->finished.usage);
        }
    }
    Json body = chat.head("chat.completion");
    body["choices"] = Json::array();
    for (std::size_t i = 0; i < answers.size(); ++i)
        body["choices"].push_back(choice_json(chat, i, answers[i]));
    body["usage"] = usage_json(usage);
    body["timings"] = timings_json(usage);
    return {.body = dump(body)};
}

Json call_delta(const AnswerEvent& event) {
    Json call = {{"index", event.call}};
    if (event.kind == Kind::CallBegin) {
        call["id"] = event.id;
        call["type"] = "function";
        call["function"] = {{"name", event.name}, {"arguments", ""}};
    } else {
        call["function"] = {{"arguments", event.text}};
    }
    return {{"tool_calls", Json::array({call})}};
}

/// What one event adds to the message; null for one that adds nothing.
Json delta_json(const AnswerEvent& event) {
    switch (event.kind) {
        case Kind::Content:
            return {{"content", event.text}};
        case Kind::Reasoning:
            return {{"reasoning_content", event.text}};
        case Kind::CallBegin:
        case Kind::Arguments:
            return call_delta(event);
        case Kind::CallEnd:
            break;
    }
    return nullptr;
}

/// Writes a chat's answers as a stream of chunks.
class ChatStream {
  public:
    ChatStream(Chat chat, StreamWriter& writer)
        : chat_(std::move(chat)),
          writer_(writer),
          tokens_(static_cast<std::size_t>(chat_.generation.answers)) {}

    void run() {
        for (std::size_t i = 0; i < tokens_.size(); ++i) send(i, {{"role", "assistant"}, {"content", ""}});
        while (auto delta = chat_.reader.next([this] { writer_.write(": waiting\n\n"); })) {
            std::visit([&](auto& what) { tell(delta->answer, what); }, delta->what);
        }
        if (chat_.reader.left()) return;
        if (chat_.generation.include_usage) send_usage();
        writer_.write(kSseDone);
    }

  private:
    void tell(std::size_t, scheduler::Started&) {}
    void tell(std::size_t, scheduler::PromptProgress& progress) {
        if (!chat_.generation.return_progress) return;
        Json chunk = chat_.head("chat.completion.chunk");
        chunk["choices"] = Json::array();
        chunk["prompt_progress"] = progress_json(progress);
        writer_.write(sse(chunk));
    }
    void tell(std::size_t answer, AnswerPiece& piece) {
        for (auto& token : piece.tokens) tokens_[answer].push_back(std::move(token));
        send_events(answer, piece.events);
    }
    void tell(std::size_t answer, AnswerEnd& end) {
        send_events(answer, end.events);
        add_usage(usage_, end.finished.usage);
        Json chunk = chunk_of(answer, Json::object());
        chunk["choices"][0]["finish_reason"] = finish_word(end.finished.reason, end.calls);
        chunk["timings"] = timings_json(end.finished.usage);
        writer_.write(sse(chunk));
    }

    void send_events(std::size_t answer, const std::vector<AnswerEvent>& events) {
        for (const AnswerEvent& event : events) {
            if (Json delta = delta_json(event); !delta.is_null()) send(answer, std::move(delta));
        }
    }
    void send(std::size_t answer, Json delta) { writer_.write(sse(chunk_of(answer, std::move(delta)))); }

    /// With the probabilities of the tokens that came since the last one.
    Json chunk_of(std::size_t answer, Json delta) {
        Json choice = {{"index", answer},
                       {"delta", std::move(delta)},
                       {"logprobs", nullptr},
                       {"finish_reason", nullptr}};
        if (chat_.tells_probabilities() && !tokens_[answer].empty()) {
            choice["logprobs"] = chat_log_probabilities(tokens_[answer], chat_.service.tokenizer());
        }
        tokens_[answer].clear();
        Json chunk = chat_.head("chat.completion.chunk");
        chunk["choices"] = Json::array({std::move(choice)});
        return chunk;
    }

    void send_usage() {
        Json chunk = chat_.head("chat.completion.chunk");
        chunk["choices"] = Json::array();
        chunk["usage"] = usage_json(usage_);
        chunk["timings"] = timings_json(usage_);
        writer_.write(sse(chunk));
    }

    Chat chat_;
    StreamWriter& writer_;
    std::vector<std::vector<scheduler::GeneratedToken>> tokens_;  ///< [answers], not told yet
    scheduler::Usage usage_;
};

HttpResponse answer_stream(Chat chat) {
    const auto shared = std::make_shared<std::optional<Chat>>(std::move(chat));
    return {.content_type = kEventStream,
            .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
            .stream = [shared](StreamWriter& writer) {
                try {
                    Chat taken = std::move(**shared);
                    shared->reset();
                    ChatStream(std::move(taken), writer).run();
                } catch (const std::exception& error) {
                    writer.write(sse(stream_error(error)));
                }
            }};
}

HttpResponse complete_chat(const HttpRequest& request, Service& service) {
    const Json body = parse_object(request.body);
    const Fields fields(body);
    Generation generation = read_generation(fields, service, request.client());
    read_log_probabilities(fields, generation);
    const PreparedChat prepared = prepare_chat(read_chat(fields), service);
    AnswerReader reader(submit_chat(prepared, generation, service),
                        make_parsers(prepared, generation.answers), request.present);
    Chat chat{service, std::move(generation), std::move(reader)};
    return chat.generation.stream ? answer_stream(std::move(chat)) : answer_whole(std::move(chat));
}

}  // namespace

void add_chat_completions(Router& router, Service& service) {
    const auto handler = [&service](const HttpRequest& request, const std::string&) {
        return complete_chat(request, service);
    };
    router.add("POST", "/v1/chat/completions", handler);
    router.add("POST", "/chat/completions", handler);
}

}  // namespace coterie::server
