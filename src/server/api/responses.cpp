#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "server/api/endpoints.h"
#include "server/api/openai_json.h"
#include "server/chat/answer_blocks.h"
#include "server/chat/chat_input.h"
#include "server/chat/responses_request.h"
#include "server/json/api_error.h"
#include "server/json/parse.h"
#include "server/service/answer_reader.h"

namespace coterie::server {
namespace {

enum class Progress { Running, Done };

/// One response on its way out.
struct Reply {
    Service& service;
    Generation generation;
    AnswerReader reader;
    Json echo;  ///< fields of the request that the response repeats
    std::string id = random_id("resp_");
    std::int64_t created = unix_time();
};

Json usage_of(const scheduler::Usage& usage) {
    return {{"input_tokens", usage.prompt_tokens},
            {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
            {"output_tokens", usage.generated_tokens},
            {"output_tokens_details", {{"reasoning_tokens", 0}}},
            {"total_tokens", usage.prompt_tokens + usage.generated_tokens}};
}

Json text_part(const std::string& text) {
    return {
        {"type", "output_text"}, {"text", text}, {"annotations", Json::array()}, {"logprobs", Json::array()}};
}

/// The item of a block; as it begins, without what it will say.
Json item_json(const AnswerBlock& block, const std::string& id, Progress progress) {
    const bool done = progress == Progress::Done;
    const char* const status = done ? "completed" : "in_progress";
    switch (block.kind) {
        case AnswerBlock::Kind::Reasoning: {
            Json item = {
                {"id", id}, {"type", "reasoning"}, {"summary", Json::array()}, {"content", Json::array()}};
            if (done) item["content"].push_back({{"type", "reasoning_text"}, {"text", block.text}});
            return item;
        }
        case AnswerBlock::Kind::Text:
            return {{"id", id},
                    {"type", "message"},
                    {"status", status},
                    {"role", "assistant"},
                    {"content", done ? Json::array({text_part(block.text)}) : Json::array()}};
        case AnswerBlock::Kind::Call:
            break;
    }
    return {{"id", id},           {"type", "function_call"},
            {"status", status},   {"call_id", block.id},
            {"name", block.name}, {"arguments", done ? block.text : std::string()}};
}

std::string item_id(const AnswerBlock& block) {
    if (block.kind == AnswerBlock::Kind::Reasoning) return random_id("rs_");
    return random_id(block.kind == AnswerBlock::Kind::Text ? "msg_" : "fc_");
}

Json reply_json(const Reply& reply) {
    Json body = {{"id", reply.id},
                 {"object", "response"},
                 {"created_at", reply.created},
                 {"status", "in_progress"},
                 {"error", nullptr},
                 {"incomplete_details", nullptr},
                 {"model", reply.service.facts().id},
                 {"output", Json::array()},
                 {"previous_response_id", nullptr},
                 {"store", false},
                 {"usage", nullptr}};
    body.update(reply.echo);
    return body;
}

void settle(Json& body, const scheduler::Finished& finished) {
    const bool cut = finish_word(finished.reason, 0) == "length";
    body["status"] = cut ? "incomplete" : "completed";
    if (cut) body["incomplete_details"] = {{"reason", "max_output_tokens"}};
    body["usage"] = usage_of(finished.usage);
}

HttpResponse answer_whole(Reply reply) {
    BlockCollector collector;
    AnswerBlocks blocks(collector);
    Json body = reply_json(reply);
    while (auto delta = reply.reader.next()) {
        if (auto* piece = std::get_if<AnswerPiece>(&delta->what)) blocks.add(piece->events);
        if (auto* end = std::get_if<AnswerEnd>(&delta->what)) {
            blocks.add(end->events);
            settle(body, end->finished);
        }
    }
    blocks.finish();
    for (const AnswerBlock& block : collector.blocks()) {
        body["output"].push_back(item_json(block, item_id(block), Progress::Done));
    }
    return {.body = dump(body)};
}

/// Writes an answer as the events of the Responses stream.
class ReplyStream final : BlockListener {
  public:
    ReplyStream(Reply reply, StreamWriter& writer)
        : reply_(std::move(reply)), writer_(writer), blocks_(*this), body_(reply_json(reply_)) {}

    void run() {
        send("response.created", {{"response", body_}});
        send("response.in_progress", {{"response", body_}});
        while (auto delta = reply_.reader.next([this] { writer_.write(": waiting\n\n"); })) {
            if (auto* piece = std::get_if<AnswerPiece>(&delta->what)) blocks_.add(piece->events);
            if (auto* end = std::get_if<AnswerEnd>(&delta->what)) finish(*end);
        }
    }

  private:
    void finish(const AnswerEnd& end) {
        blocks_.add(end.events);
        blocks_.finish();
        settle(body_, end.finished);
        const bool whole = body_["status"] == "completed";
        send(whole ? "response.completed" : "response.incomplete", {{"response", body_}});
    }

    void block_begins(const AnswerBlock& block) override {
        item_id_ = item_id(block);
        send("response.output_item.added",
             {{"output_index", block.index}, {"item", item_json(block, item_id_, Progress::Running)}});
        if (block.kind == AnswerBlock::Kind::Text) tell_part("response.content_part.added", block, "");
    }

    void block_grows(const AnswerBlock& block, const std::string& text) override {
        send(event_of(block.kind) + ".delta", place(block, {{"delta", text}}));
    }

    void block_ends(const AnswerBlock& block) override {
        const char* const whole = block.kind == AnswerBlock::Kind::Call ? "arguments" : "text";
        send(event_of(block.kind) + ".done", place(block, {{whole, block.text}}));
        if (block.kind == AnswerBlock::Kind::Text) tell_part("response.content_part.done", block, block.text);
        Json item = item_json(block, item_id_, Progress::Done);
        send("response.output_item.done", {{"output_index", block.index}, {"item", item}});
        body_["output"].push_back(std::move(item));
    }

    static std::string event_of(AnswerBlock::Kind kind) {
        if (kind == AnswerBlock::Kind::Reasoning) return "response.reasoning_text";
        return kind == AnswerBlock::Kind::Text ? "response.output_text" : "response.function_call_arguments";
    }

    void tell_part(const std::string& event, const AnswerBlock& block, const std::string& text) {
        send(event, place(block, {{"part", text_part(text)}}));
    }

    Json place(const AnswerBlock& block, const Json& rest) const {
        Json data = {{"item_id", item_id_}, {"output_index", block.index}};
        if (block.kind != AnswerBlock::Kind::Call) data["content_index"] = 0;
        if (block.kind == AnswerBlock::Kind::Text && !rest.contains("part")) data["logprobs"] = Json::array();
        data.update(rest);
        return data;
    }

    void send(const std::string& event, const Json& rest) {
        Json data = {{"type", event}, {"sequence_number", number_++}};
        data.update(rest);
        writer_.write(sse(event, data));
    }

    Reply reply_;
    StreamWriter& writer_;
    AnswerBlocks blocks_;
    Json body_;
    std::string item_id_;
    std::int64_t number_ = 0;
};

HttpResponse answer_stream(Reply reply) {
    const auto shared = std::make_shared<std::optional<Reply>>(std::move(reply));
    return {.content_type = kEventStream,
            .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
            .stream = [shared](StreamWriter& writer) {
                try {
                    Reply taken = std::move(**shared);
                    shared->reset();
                    ReplyStream(std::move(taken), writer).run();
                } catch (const std::exception& error) {
                    writer.write(sse("error", {{"type", "error"},
                                               {"code", "server_error"},
                                               {"message", error.what()},
                                               {"param", nullptr}}));
                }
            }};
}

Json repeated_fields(const Json& body) {
    Json echo = {{"instructions", nullptr}, {"metadata", Json::object()},  {"parallel_tool_calls", true},
                 {"temperature", nullptr},  {"tool_choice", "auto"},       {"tools", Json::array()},
                 {"top_p", nullptr},        {"max_output_tokens", nullptr}};
    for (auto& [name, value] : echo.items()) {
        if (const auto given = body.find(name); given != body.end() && !given->is_null()) value = *given;
    }
    return echo;
}

HttpResponse respond(const HttpRequest& request, Service& service) {
    const Json body = parse_object(request.body);
    const Fields fields(body);
    Generation generation = read_generation(fields, service, request.client());
    generation.answers = 1;
    const PreparedChat chat = prepare_chat(read_responses_chat(fields), service);
    AnswerReader reader(submit_chat(chat, generation, service), make_parsers(chat, 1), request.present);
    Reply reply{service, std::move(generation), std::move(reader), repeated_fields(body)};
    return reply.generation.stream ? answer_stream(std::move(reply)) : answer_whole(std::move(reply));
}

}  // namespace

void add_responses(Router& router, Service& service) {
    router.add("POST", "/v1/responses", [&service](const HttpRequest& request, const std::string&) {
        return respond(request, service);
    });
}

}  // namespace coterie::server
