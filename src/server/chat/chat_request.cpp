#include "server/chat/chat_request.h"

#include <nlohmann/json.hpp>

#include "server/chat/format_wish.h"
#include "server/json/api_error.h"
#include "server/json/parse.h"

namespace coterie::server {
namespace {

ToolWish read_tool_wish(const Fields& fields) {
    ToolWish wish;
    wish.parallel = fields.boolean("parallel_tool_calls").value_or(true);
    const Json* choice = fields.find("tool_choice");
    if (!choice) return wish;
    const std::string path = fields.path("tool_choice");
    if (choice->is_object()) {
        const Fields named(*choice, path);
        const auto function = named.object("function");
        const auto name = function ? function->string("name") : named.string("name");
        if (!name) refuse_field(named.path("function.name"), "is missing");
        return {ToolWish::Choice::Named, *name, wish.parallel};
    }
    const auto word = fields.word("tool_choice", {"none", "auto", "required"});
    if (word == "none") wish.choice = ToolWish::Choice::None;
    if (word == "required") wish.choice = ToolWish::Choice::Required;
    return wish;
}

std::string read_variables(const Fields& fields) {
    Json variables = Json::object();
    if (const Json* given = fields.find("chat_template_kwargs")) {
        Fields(*given, fields.path("chat_template_kwargs"));
        variables = *given;
    }
    if (const auto effort = fields.string("reasoning_effort")) variables["reasoning_effort"] = *effort;
    if (const auto thinking = fields.boolean("enable_thinking")) variables["enable_thinking"] = *thinking;
    return variables.empty() ? std::string() : dump(variables);
}

/// What tools were called once: to pass over them would leave the model without its tools.
void refuse_old_names(const Fields& fields) {
    if (fields.has("functions"))
        refuse_field(fields.path("functions"), "is not supported; give tools instead");
    if (fields.has("function_call"))
        refuse_field(fields.path("function_call"), "is not supported; give tool_choice instead");
}

}  // namespace

ChatInput read_chat(const Fields& fields) {
    refuse_old_names(fields);
    ChatInput input;
    if (!fields.array("messages", kMostMessages)) refuse_field(fields.path("messages"), "is missing");
    input.messages = dump(*fields.find("messages"));
    if (const Json* tools = fields.array("tools", kMostTools); tools && !tools->empty())
        input.tools = dump(*tools);
    input.tool_wish = read_tool_wish(fields);
    input.format = read_format(fields);
    input.variables = read_variables(fields);
    return input;
}

}  // namespace coterie::server
