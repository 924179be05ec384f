#include "server/chat/responses_request.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "server/chat/format_wish.h"
#include "server/json/api_error.h"
#include "server/json/parse.h"

namespace coterie::server {
namespace {

/// A text, or parts of text joined.
std::string text_of_parts(const Json& content, const std::string& path) {
    if (content.is_string()) return content.get<std::string>();
    if (!content.is_array()) refuse_field(path, "must be a string or an array of parts");
    std::string text;
    for (std::size_t i = 0; i < content.size(); ++i) {
        const Fields part(content[i], Fields::at(path, i));
        part.word("type", {"input_text", "output_text", "reasoning_text", "summary_text", "text", "refusal"});
        text += part.has("refusal") ? part.required_string("refusal") : part.required_string("text");
    }
    return text;
}

/// Items of one turn of the assistant (thoughts, text, calls) become one message.
class ItemReader {
  public:
    explicit ItemReader(Json& messages) : messages_(messages) {}

    void read(const Fields& item) {
        const std::string type = item.string("type").value_or("message");
        if (type == "message") return add_message(item);
        if (type == "reasoning") return add_reasoning(item);
        if (type == "function_call") return add_call(item);
        if (type == "function_call_output") return add_output(item);
        refuse_field(item.path("type"), fmt::format("items of type '{}' are not supported", type));
    }

  private:
    /// The assistant's message at the end, which further items of its turn join.
    Json& assistant() {
        if (messages_.empty() || messages_.back()["role"] != "assistant") {
            messages_.push_back({{"role", "assistant"}, {"content", ""}});
        }
        return messages_.back();
    }

    void add_message(const Fields& item) {
        const std::string role = item.required_word("role", {"user", "assistant", "system", "developer"});
        const std::string text = text_of_parts(item.required("content"), item.path("content"));
        if (role == "assistant") {
            Json& message = assistant();
            message["content"] = message["content"].get<std::string>() + text;
        } else {
            messages_.push_back({{"role", role}, {"content", text}});
        }
    }

    void add_reasoning(const Fields& item) {
        const char* const source = item.has("content") ? "content" : "summary";
        if (const Json* content = item.find(source)) {
            const std::string text = text_of_parts(*content, item.path(source));
            if (!text.empty()) assistant()["reasoning_content"] = text;
        }
    }

    void add_call(const Fields& item) {
        Json call = {
            {"id", item.required_string("call_id")},
            {"type", "function"},
            {"function",
             {{"name", item.required_string("name")}, {"arguments", item.required_string("arguments")}}}};
        assistant()["tool_calls"].push_back(std::move(call));
    }

    void add_output(const Fields& item) {
        messages_.push_back({{"role", "tool"},
                             {"tool_call_id", item.required_string("call_id")},
                             {"content", text_of_parts(item.required("output"), item.path("output"))}});
    }

    Json& messages_;
};

std::string read_messages(const Fields& fields) {
    Json messages = Json::array();
    if (const auto instructions = fields.string("instructions")) {
        messages.push_back({{"role", "system"}, {"content", *instructions}});
    }
    const Json& input = fields.required("input");
    if (input.is_string()) {
        messages.push_back({{"role", "user"}, {"content", input}});
        return dump(messages);
    }
    if (!input.is_array()) refuse_field(fields.path("input"), "must be a string or an array of items");
    const Json* items = fields.array("input", kMostMessages);
    ItemReader reader(messages);
    for (std::size_t i = 0; i < items->size(); ++i) {
        reader.read(Fields((*items)[i], Fields::at(fields.path("input"), i)));
    }
    return dump(messages);
}

std::string read_responses_tools(const Fields& fields) {
    const Json* tools = fields.array("tools", kMostTools);
    if (!tools || tools->empty()) return {};
    Json translated = Json::array();
    for (std::size_t i = 0; i < tools->size(); ++i) {
        const Fields tool((*tools)[i], Fields::at(fields.path("tools"), i));
        if (tool.required_string("type") != "function") {
            refuse_field(tool.path("type"), "must be function; this server runs no tools of its own");
        }
        Json function = {{"name", tool.required_string("name")}};
        if (const auto description = tool.string("description")) function["description"] = *description;
        const Json* schema = tool.find("parameters");
        function["parameters"] = schema ? *schema : Json{{"type", "object"}};
        if (tool.boolean("strict").value_or(false)) function["strict"] = true;
        translated.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
    return dump(translated);
}

ToolWish read_responses_tool_wish(const Fields& fields) {
    ToolWish wish;
    wish.parallel = fields.boolean("parallel_tool_calls").value_or(true);
    const Json* choice = fields.find("tool_choice");
    if (choice && choice->is_object()) {
        wish.choice = ToolWish::Choice::Named;
        wish.name = Fields(*choice, fields.path("tool_choice")).required_string("name");
        return wish;
    }
    const auto word = fields.word("tool_choice", {"none", "auto", "required"});
    if (word == "none") wish.choice = ToolWish::Choice::None;
    if (word == "required") wish.choice = ToolWish::Choice::Required;
    return wish;
}

}  // namespace

ChatInput read_responses_chat(const Fields& fields) {
    if (fields.has("previous_response_id")) {
        refuse_field("previous_response_id",
                     "is not supported: nothing is kept; send the whole conversation as input");
    }
    ChatInput input;
    input.messages = read_messages(fields);
    input.tools = read_responses_tools(fields);
    input.tool_wish = read_responses_tool_wish(fields);
    const auto text = fields.object("text");
    input.format = read_format(fields, {text ? text->object("format") : std::nullopt});
    const auto reasoning = fields.object("reasoning");
    if (const auto effort = reasoning ? reasoning->string("effort") : std::nullopt) {
        input.variables = dump({{"reasoning_effort", *effort}});
    }
    return input;
}

}  // namespace coterie::server
