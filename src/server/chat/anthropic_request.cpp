#include "server/chat/anthropic_request.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "server/chat/format_wish.h"
#include "server/json/api_error.h"
#include "server/json/parse.h"

namespace coterie::server {
namespace {

constexpr std::size_t kMostBlocks = 4'096;

/// A text, or blocks of text joined.
std::string text_of_blocks(const Json& content, const std::string& path) {
    if (content.is_string()) return content.get<std::string>();
    if (!content.is_array()) refuse_field(path, "must be a string or an array of blocks");
    std::string text;
    for (std::size_t i = 0; i < content.size(); ++i) {
        const Fields block(content[i], Fields::at(path, i));
        if (block.required_string("type") != "text") {
            refuse_field(block.path("type"), "must be text; this model reads nothing else");
        }
        text += block.required_string("text");
    }
    return text;
}

/// One message of the request, which may become several.
class MessageReader {
  public:
    MessageReader(const Fields& fields, Json& messages) : fields_(fields), messages_(messages) {}

    void read() {
        role_ = fields_.required_word("role", {"user", "assistant"});
        const Json& content = fields_.required("content");
        if (content.is_string()) {
            messages_.push_back({{"role", role_}, {"content", content}});
            return;
        }
        const Json* blocks = fields_.array("content", kMostBlocks);
        for (std::size_t i = 0; i < blocks->size(); ++i) {
            read_block(Fields((*blocks)[i], Fields::at(fields_.path("content"), i)));
        }
        finish();
    }

  private:
    void read_block(const Fields& block) {
        const std::string type = block.required_string("type");
        if (type == "text") {
            text_ += block.required_string("text");
            has_text_ = true;
        } else if (type == "thinking" && role_ == "assistant") {
            thoughts_ += block.required_string("thinking");
        } else if (type == "tool_use" && role_ == "assistant") {
            add_call(block);
        } else if (type == "tool_result" && role_ == "user") {
            add_result(block);
        } else if (type != "redacted_thinking") {
            refuse_field(block.path("type"), fmt::format("blocks of type '{}' are not supported here", type));
        }
    }

    void add_call(const Fields& block) {
        const Json* input = block.find("input");
        calls_.push_back({{"id", block.required_string("id")},
                          {"type", "function"},
                          {"function",
                           {{"name", block.required_string("name")},
                            {"arguments", input ? dump(*input) : std::string("{}")}}}});
    }

    void add_result(const Fields& block) {
        const Json* content = block.find("content");
        messages_.push_back(
            {{"role", "tool"},
             {"tool_call_id", block.required_string("tool_use_id")},
             {"content", content ? text_of_blocks(*content, block.path("content")) : std::string()}});
    }

    /// Results come first: they answer the message before this one.
    void finish() {
        if (role_ == "user" && !has_text_) return;
        Json message = {{"role", role_}, {"content", text_}};
        if (!thoughts_.empty()) message["reasoning_content"] = thoughts_;
        if (!calls_.empty()) message["tool_calls"] = calls_;
        messages_.push_back(std::move(message));
    }

    const Fields& fields_;
    Json& messages_;
    std::string role_;
    std::string text_;
    std::string thoughts_;
    bool has_text_ = false;
    Json calls_ = Json::array();
};

std::string read_anthropic_tools(const Fields& fields) {
    const Json* tools = fields.array("tools", kMostTools);
    if (!tools || tools->empty()) return {};
    Json translated = Json::array();
    for (std::size_t i = 0; i < tools->size(); ++i) {
        const Fields tool((*tools)[i], Fields::at(fields.path("tools"), i));
        Json function = {{"name", tool.required_string("name")}};
        if (const auto description = tool.string("description")) function["description"] = *description;
        const Json* schema = tool.find("input_schema");
        function["parameters"] = schema ? *schema : Json{{"type", "object"}};
        if (tool.boolean("strict").value_or(false)) function["strict"] = true;
        translated.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
    return dump(translated);
}

ToolWish read_anthropic_tool_wish(const Fields& fields) {
    ToolWish wish;
    const auto choice = fields.object("tool_choice");
    if (!choice) return wish;
    wish.parallel = !choice->boolean("disable_parallel_tool_use").value_or(false);
    const std::string type = choice->required_word("type", {"auto", "any", "tool", "none"});
    if (type == "any") wish.choice = ToolWish::Choice::Required;
    if (type == "none") wish.choice = ToolWish::Choice::None;
    if (type == "tool") {
        wish.choice = ToolWish::Choice::Named;
        wish.name = choice->required_string("name");
    }
    return wish;
}

}  // namespace

ChatInput read_anthropic_chat(const Fields& fields) {
    Json messages = Json::array();
    if (const Json* system = fields.find("system")) {
        messages.push_back({{"role", "system"}, {"content", text_of_blocks(*system, fields.path("system"))}});
    }
    const Json* given = fields.array("messages", kMostMessages);
    if (!given) refuse_field(fields.path("messages"), "is missing");
    if (given->empty()) refuse_field(fields.path("messages"), "must hold at least one message");
    for (std::size_t i = 0; i < given->size(); ++i) {
        const Fields message((*given)[i], Fields::at(fields.path("messages"), i));
        MessageReader(message, messages).read();
    }
    ChatInput input;
    input.messages = dump(messages);
    input.tools = read_anthropic_tools(fields);
    input.tool_wish = read_anthropic_tool_wish(fields);
    const auto output = fields.object("output_config");
    input.format = read_format(
        fields, {output ? output->object("format") : std::nullopt, fields.object("output_format")});
    if (const auto thinking = fields.object("thinking")) {
        const auto type = thinking->word("type", {"enabled", "disabled", "adaptive"});
        input.variables = dump({{"enable_thinking", type != "disabled"}});
    }
    return input;
}

}  // namespace coterie::server
