#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "server/api/endpoints.h"
#include "server/api/openai_json.h"
#include "server/chat/answer_blocks.h"
#include "server/chat/anthropic_request.h"
#include "server/chat/chat_input.h"
#include "server/json/api_error.h"
#include "server/json/parse.h"
#include "server/service/answer_reader.h"

namespace coterie::server {
namespace {

struct Message {
    Service& service;
    Generation generation;
    AnswerReader reader;
    std::string id = random_id("msg_");
};

Json block_json(const AnswerBlock& block) {
    switch (block.kind) {
        case AnswerBlock::Kind::Reasoning:
            return {{"type", "thinking"}, {"thinking", block.text}, {"signature", ""}};
        case AnswerBlock::Kind::Text:
            return {{"type", "text"}, {"text", block.text}};
        case AnswerBlock::Kind::Call:
            break;
    }
    const Json input =
        Json::parse(block.text, nullptr, false);  // an answer that was cut off may end anywhere
    return {{"type", "tool_use"},
            {"id", block.id},
            {"name", block.name},
            {"input", input.is_object() ? input : Json::object()}};
}

/// As the block begins: without what it will say.
Json empty_block_json(AnswerBlock block) {
    block.text.clear();
    return block_json(block);
}

Json delta_json(const AnswerBlock& block, const std::string& text) {
    switch (block.kind) {
        case AnswerBlock::Kind::Reasoning:
            return {{"type", "thinking_delta"}, {"thinking", text}};
        case AnswerBlock::Kind::Text:
            return {{"type", "text_delta"}, {"text", text}};
        case AnswerBlock::Kind::Call:
            break;
    }
    return {{"type", "input_json_delta"}, {"partial_json", text}};
}

std::string stop_reason(const AnswerEnd& end) {
    if (end.finished.reason == scheduler::FinishReason::StopText) return "stop_sequence";
    const std::string word = finish_word(end.finished.reason, end.calls);
    if (word == "tool_calls") return "tool_use";
    return word == "length" ? "max_tokens" : "end_turn";
}

Json stop_sequence(const AnswerEnd& end) {
    return end.finished.stop_text.empty() ? Json() : Json(end.finished.stop_text);
}

/// Tokens read from the cache are told apart from the others, as in Anthropic's API.
Json usage_of(std::int64_t prompt, std::int64_t cached, std::int64_t generated) {
    return {{"input_tokens", prompt - cached},
            {"cache_creation_input_tokens", 0},
            {"cache_read_input_tokens", cached},
            {"output_tokens", generated}};
}
Json usage_of(const scheduler::Usage& usage) {
    return usage_of(usage.prompt_tokens, usage.cached_tokens, usage.generated_tokens);
}

Json message_json(const Message& message) {
    return {{"id", message.id},         {"type", "message"},
            {"role", "assistant"},      {"model", message.service.facts().id},
            {"content", Json::array()}, {"stop_reason", nullptr},
            {"stop_sequence", nullptr}};
}

HttpResponse answer_whole(Message message) {
    BlockCollector collector;
    AnswerBlocks blocks(collector);
    Json body = message_json(message);
    while (auto delta = message.reader.next()) {
        if (auto* piece = std::get_if<AnswerPiece>(&delta->what)) blocks.add(piece->events);
        if (auto* end = std::get_if<AnswerEnd>(&delta->what)) {
            blocks.add(end->events);
            body["stop_reason"] = stop_reason(*end);
            body["stop_sequence"] = stop_sequence(*end);
            body["usage"] = usage_of(end->finished.usage);
        }
    }
    blocks.finish();
    for (const AnswerBlock& block : collector.blocks()) body["content"].push_back(block_json(block));
    return {.body = dump(body)};
}

/// Writes an answer as the events of Anthropic's stream.
class MessageStream final : BlockListener {
  public:
    MessageStream(Message message, StreamWriter& writer)
        : message_(std::move(message)), writer_(writer), blocks_(*this) {}

    void run() {
        while (auto delta = message_.reader.next([this] { send("ping", Json::object()); })) {
            std::visit([&](auto& what) { tell(what); }, delta->what);
        }
    }

  private:
    void tell(const scheduler::Started& started) {
        Json message = message_json(message_);
        message["usage"] = usage_of(started.prompt_tokens, started.cached_tokens, 0);
        send("message_start", {{"message", std::move(message)}});
    }
    void tell(const scheduler::PromptProgress&) {}
    void tell(const AnswerPiece& piece) { blocks_.add(piece.events); }
    void tell(const AnswerEnd& end) {
        blocks_.add(end.events);
        blocks_.finish();
        send("message_delta",
             {{"delta", {{"stop_reason", stop_reason(end)}, {"stop_sequence", stop_sequence(end)}}},
              {"usage", usage_of(end.finished.usage)}});
        send("message_stop", Json::object());
    }

    void block_begins(const AnswerBlock& block) override {
        send("content_block_start", {{"index", block.index}, {"content_block", empty_block_json(block)}});
    }
    void block_grows(const AnswerBlock& block, const std::string& text) override {
        send("content_block_delta", {{"index", block.index}, {"delta", delta_json(block, text)}});
    }
    void block_ends(const AnswerBlock& block) override {
        send("content_block_stop", {{"index", block.index}});
    }

    void send(const std::string& event, const Json& rest) {
        Json data = {{"type", event}};
        data.update(rest);
        writer_.write(sse(event, data));
    }

    Message message_;
    StreamWriter& writer_;
    AnswerBlocks blocks_;
};

Json anthropic_stream_error(const std::exception& error) {
    return {{"type", "error"}, {"error", {{"type", "api_error"}, {"message", error.what()}}}};
}

HttpResponse answer_stream(Message message) {
    const auto shared = std::make_shared<std::optional<Message>>(std::move(message));
    return {.content_type = kEventStream,
            .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
            .stream = [shared](StreamWriter& writer) {
                try {
                    Message taken = std::move(**shared);
                    shared->reset();
                    MessageStream(std::move(taken), writer).run();
                } catch (const std::exception& error) {
                    writer.write(sse("error", anthropic_stream_error(error)));
                }
            }};
}

HttpResponse create_message(const HttpRequest& request, Service& service) {
    const Json body = parse_object(request.body);
    const Fields fields(body);
    if (!fields.has("max_tokens")) refuse_field("max_tokens", "is missing");
    Generation generation = read_generation(fields, service, request.client());
    generation.answers = 1;
    generation.stop = fields.strings("stop_sequences", 64);
    const PreparedChat chat = prepare_chat(read_anthropic_chat(fields), service);
    AnswerReader reader(submit_chat(chat, generation, service), make_parsers(chat, 1), request.present);
    Message message{service, std::move(generation), std::move(reader)};
    return message.generation.stream ? answer_stream(std::move(message)) : answer_whole(std::move(message));
}

HttpResponse count_tokens(const HttpRequest& request, Service& service) {
    const Json body = parse_object(request.body);
    const PreparedChat chat = prepare_chat(read_anthropic_chat(Fields(body)), service);
    return {.body = dump({{"input_tokens", chat.tokens.size()}})};
}

}  // namespace

void add_messages(Router& router, Service& service) {
    router.add("POST", "/v1/messages", [&service](const HttpRequest& request, const std::string&) {
        return create_message(request, service);
    });
    router.add("POST", "/v1/messages/count_tokens",
               [&service](const HttpRequest& request, const std::string&) {
                   return count_tokens(request, service);
               });
}

}  // namespace coterie::server
