#include "chat/tools/tool_definition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "chat/tools/tool_format.h"

namespace coterie {
namespace {

using ::testing::HasSubstr;

std::string error_of(std::string_view json) {
    try {
        parse_tools(json);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
        return error.what();
    }
    return "accepted";
}

TEST(ToolDefinition, ReadsTheShapeOfRequests) {
    const auto tools = parse_tools(R"([{"type": "function", "function": {"name": "a", "description": "d",
        "strict": true, "parameters": {"type": "object", "properties": {"z": {}, "b": {}}}}},
        {"type": "function", "function": {"name": "b.c-d", "parameters": null}}])");
    ASSERT_EQ(tools.size(), 2u);
    EXPECT_EQ(tools[0].name, "a");
    EXPECT_TRUE(tools[0].strict);
    EXPECT_EQ(tools[0].parameters, R"({"type":"object","properties":{"z":{},"b":{}}})");
    EXPECT_EQ(tools[1].parameters, R"({"type":"object"})");
    EXPECT_FALSE(tools[1].strict);
    EXPECT_EQ(parse_tools(R"([{"function": {"name": "a", "parameters": {"anyOf": []}}}])")[0].parameters,
              R"({"anyOf":[],"type":"object"})");
    EXPECT_TRUE(parse_tools("[]").empty());
    EXPECT_TRUE(parse_tools(R"([{"strict": true, "function": {"name": "a", "strict": null}}])")[0].strict);
}

TEST(ToolDefinition, RefusesOthersByTheirPlace) {
    EXPECT_THAT(error_of("{}"), HasSubstr("tools: not a JSON array"));
    EXPECT_THAT(error_of("[1]"), HasSubstr("tools[0]: it must be an object"));
    EXPECT_THAT(error_of(R"([{"type": "search"}])"), HasSubstr("only tools of type"));
    EXPECT_THAT(error_of(R"([{"type": 1}])"), HasSubstr("tools[0]: a field has the wrong type"));
    EXPECT_THAT(error_of(R"([{"type": "function"}])"), HasSubstr("\"function\" is missing"));
    EXPECT_THAT(error_of(R"([{"function": {"name": "a b"}}])"), HasSubstr("tools[0].function.name"));
    EXPECT_THAT(error_of(R"([{"function": {"name": "a", "strict": "true"}}])"),
                HasSubstr("tools[0].function.strict"));
    EXPECT_THAT(error_of(R"([{"function": {"name": "a", "parameters": []}}])"),
                HasSubstr("must be a JSON schema"));
    EXPECT_THAT(error_of(R"([{"function": {"name": "a", "parameters": {"type": "string"}}}])"),
                HasSubstr("are an object"));
    EXPECT_THAT(error_of(R"([{"function": {"name": "a"}}, {"function": {"name": "a"}}])"),
                HasSubstr("'a' occurs twice"));
}

TEST(ToolFormat, FollowsFromTheTemplate) {
    EXPECT_EQ(find_tool_format("{{ messages }}"), ToolFormat::None);
    EXPECT_EQ(find_tool_format("<tool_call>\n{\"name\""), ToolFormat::Hermes);
    EXPECT_EQ(find_tool_format("<tool_call>\n<function=x>\n<parameter=y>"), ToolFormat::QwenCoder);
    EXPECT_EQ(find_tool_format("<tool_call>{name}<arg_key>k</arg_key><arg_value>"), ToolFormat::Glm);
    EXPECT_EQ(find_tool_format("<|channel|>commentary"), ToolFormat::Harmony);
    EXPECT_EQ(find_tool_format("[TOOL_CALLS] [ARGS]"), ToolFormat::MistralArgs);
    EXPECT_EQ(find_tool_format("[TOOL_CALLS]["), ToolFormat::MistralList);
    const std::string deepseek = "<\uFF5Ctool\u2581calls\u2581begin\uFF5C>";
    EXPECT_EQ(find_tool_format(deepseek + "```json"), ToolFormat::DeepSeek);
    EXPECT_EQ(find_tool_format(deepseek), ToolFormat::DeepSeek31);
}

TEST(ToolFormat, NamesReadBack) {
    for (const char* name : {"none", "hermes", "qwen-coder", "glm", "harmony", "deepseek", "deepseek-v3.1",
                             "mistral", "mistral-args"})
        EXPECT_EQ(tool_format_name(parse_tool_format(name)), name);
    EXPECT_THROW(parse_tool_format("xml"), Error);
}

}  // namespace
}  // namespace coterie
