// Other APIs' chats, translated into OpenAI's shape.

#include <functional>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <tuple>

#include "server/chat/anthropic_request.h"
#include "server/chat/responses_request.h"
#include "server/chat/written_messages.h"
#include "server/json/parse.h"
#include "server/json/refused_for_test.h"

namespace coterie::server {
namespace {

using Choice = ToolWish::Choice;

ChatInput anthropic(const std::string& body) {
    const Json json = Json::parse(body);
    return read_anthropic_chat(Fields(json));
}
ChatInput responses(const std::string& body) {
    const Json json = Json::parse(body);
    return read_responses_chat(Fields(json));
}
ChatInput chat(const std::string& body) {
    const Json json = Json::parse(body);
    return read_chat(Fields(json));
}

TEST(AnthropicChat, TranslatesCallsResultsAndThoughts) {
    const ChatInput input = anthropic(R"({
        "system": [{"type": "text", "text": "S"}],
        "messages": [
            {"role": "user", "content": "Q"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "T"}, {"type": "text", "text": "A"},
                {"type": "tool_use", "id": "1", "name": "f", "input": {"x": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "R"},
                {"type": "text", "text": "M"}]}]})");
    EXPECT_EQ(Json::parse(input.messages), Json::parse(R"([
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Q"},
        {"role": "assistant", "content": "A", "reasoning_content": "T", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "R"},
        {"role": "user", "content": "M"}])"));
}

TEST(AnthropicChat, TranslatesTools) {
    const ChatInput input = anthropic(R"({"messages": [{"role": "user", "content": "Q"}],
        "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": true},
        "thinking": {"type": "disabled"}})");
    EXPECT_EQ(Json::parse(input.tools), Json::parse(R"([{"type": "function", "function":
        {"name": "f", "description": "d", "parameters": {"type": "object"}}}])"));
    EXPECT_EQ(input.tool_wish.choice, Choice::Named);
    EXPECT_EQ(input.tool_wish.name, "f");
    EXPECT_FALSE(input.tool_wish.parallel);
    EXPECT_EQ(input.variables, R"({"enable_thinking":false})");
}

TEST(AnthropicChat, NamesThePlaceOfWhatItCannotRead) {
    EXPECT_EQ(refused([] { anthropic("{}"); }), "messages");
    EXPECT_EQ(
        refused([] { anthropic(R"({"messages": [{"role": "user", "content": [{"type": "image"}]}]})"); }),
        "messages[0].content[0].type");
    EXPECT_EQ(refused([] { anthropic(R"({"messages": [{"role": "tool", "content": "x"}]})"); }),
              "messages[0].role");
    EXPECT_EQ(
        refused([] { anthropic(R"({"messages": [{"role": "user", "content": "q"}], "tools": [{}]})"); }),
        "tools[0].name");
}

TEST(ResponsesChat, JoinsTheItemsOfATurn) {
    const ChatInput input = responses(R"({"instructions": "I", "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Q"}]},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "T"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A"}]},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "R"}]})");
    EXPECT_EQ(Json::parse(input.messages), Json::parse(R"([
        {"role": "system", "content": "I"},
        {"role": "user", "content": "Q"},
        {"role": "assistant", "content": "A", "reasoning_content": "T", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "R"}])"));
}

TEST(ResponsesChat, ReadsFormatsAndRefusesWhatNeedsMemory) {
    const ChatInput input =
        responses(R"({"input": "Q", "text": {"format": {"type": "json_schema", "name": "n",
        "schema": {"type": "object"}}}, "reasoning": {"effort": "low"}})");
    EXPECT_EQ(input.format.kind, FormatWish::Kind::JsonSchema);
    EXPECT_EQ(input.format.text, R"({"type":"object"})");
    EXPECT_EQ(input.variables, R"({"reasoning_effort":"low"})");
    EXPECT_EQ(refused([] { responses(R"({"input": "Q", "previous_response_id": "x"})"); }),
              "previous_response_id");
    EXPECT_EQ(refused([] { responses(R"({"input": "Q", "tools": [{"type": "web_search"}]})"); }),
              "tools[0].type");
    EXPECT_EQ(refused([] { responses("{}"); }), "input");
}

TEST(Chat, ReadsASchemaWhereverItStands) {
    for (const char* format :
         {R"({"type": "json_schema", "json_schema": {"schema": {"const": 1}}})",
          R"({"type": "json_schema", "schema": {"const": 1}})",
          R"({"type": "json_object", "schema": {"const": 1}})",
          R"({"type": "json_schema", "json_schema": {"schema": {"const": 1}}, "schema": {"const": 2}})"}) {
        const ChatInput input = chat(std::string(R"({"messages": [], "response_format": )") + format + "}");
        EXPECT_EQ(input.format.kind, FormatWish::Kind::JsonSchema) << format;
        EXPECT_EQ(input.format.text, R"({"const":1})") << format;
    }
    EXPECT_EQ(refused([] { chat(R"({"messages": [], "response_format": {"type": "json_schema"}})"); }),
              "response_format.json_schema.schema");
    EXPECT_EQ(refused([] { chat(R"({"messages": [], "grammar": "root ::= \"a\"", "json_schema": {}})"); }),
              "grammar");
}

/// A request in each dialect, with more fields.
struct Dialect {
    const char* name;
    std::function<ChatInput(const std::string& fields)> read;
};
const Dialect kDialects[] = {
    {"chat", [](const std::string& fields) { return chat(R"({"messages": [], )" + fields + "}"); }},
    {"messages",
     [](const std::string& fields) {
         return anthropic(R"({"messages": [{"role": "user", "content": "Q"}], )" + fields + "}");
     }},
    {"responses", [](const std::string& fields) { return responses(R"({"input": "Q", )" + fields + "}"); }},
};

TEST(Formats, HoldInEveryDialect) {
    using Held = FormatWish::Kind;
    const std::tuple<const char*, Held, const char*> cases[] = {
        {R"("grammar": "root ::= \"a\"")", Held::Gbnf, "root ::= \"a\""},
        {R"("json_schema": {"const": 1})", Held::JsonSchema, R"({"const":1})"},
        {R"("response_format": {"type": "json_object"})", Held::JsonObject, ""},
        {R"("response_format": {"type": "text"})", Held::Free, ""},
        {R"("response_format": {"json_schema": {"schema": {"const": 1}}})", Held::JsonSchema,
         R"({"const":1})"},
        {R"("response_format": {"type": "json_object"}, "json_schema": {"const": 1})", Held::JsonSchema,
         R"({"const":1})"},
    };
    for (const Dialect& dialect : kDialects) {
        for (const auto& [fields, kind, text] : cases) {
            SCOPED_TRACE(std::string(dialect.name) + ": " + fields);
            const FormatWish wish = dialect.read(fields).format;
            EXPECT_EQ(wish.kind, kind);
            EXPECT_EQ(wish.text, text);
        }
    }
    for (const char* fields :
         {R"("output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"const": 1}}})",
          R"("output_format": {"type": "json_schema", "schema": {"const": 1}})"})
        EXPECT_EQ(kDialects[1].read(fields).format.text, R"({"const":1})") << fields;
}

TEST(Formats, ThatSayTooLittleOrTooMuchAreRefusedByName) {
    const std::pair<const char*, const char*> cases[] = {
        {R"("response_format": {})", "response_format.type"},
        {R"("response_format": {"type": null, "schema": {}})", "response_format.type"},
        {R"("response_format": {"type": "text", "json_schema": {"schema": {}}})", "response_format.type"},
        {R"("response_format": {"type": "grammar"})", "response_format.type"},
        {R"("response_format": {"json_schema": {"name": "n"}})", "response_format.json_schema.schema"},
        {R"("response_format": {"type": "json_object", "json_schema": {"const": 1}})",
         "response_format.json_schema.schema"},
        {R"("response_format": {"type": "json_schema", "schema": {}}, "json_schema": {})", "json_schema"},
        {R"("response_format": {"type": "json_object"}, "grammar": "root ::= \"a\"")", "grammar"},
    };
    for (const Dialect& dialect : kDialects) {
        for (const auto& [fields, place] : cases)
            EXPECT_EQ(refused([&] { dialect.read(fields); }), place) << dialect.name << ": " << fields;
    }
    const std::tuple<int, const char*, const char*> own[] = {
        {1, R"("output_format": {})", "output_format.type"},
        {1, R"("output_config": {"format": {"type": "json_schema"}})", "output_config.format.schema"},
        {1, R"("output_format": {"type": "json_schema", "schema": {}}, "json_schema": {})", "json_schema"},
        {2, R"("text": {"format": {"schema": {}}})", "text.format.type"},
        {2, R"("text": {"format": {"type": "json_schema"}})", "text.format.schema"},
        {2, R"("text": {"format": {"type": "json_object"}}, "grammar": "root ::= \"a\"")", "grammar"},
    };
    for (const auto& [dialect, fields, place] : own)
        EXPECT_EQ(refused([&] { kDialects[dialect].read(fields); }), place) << fields;
}

TEST(Tools, StayStrictInEveryDialect) {
    const char* const tools[] = {
        R"("tools": [{"type": "function", "function": {"name": "f", "strict": true}}])",
        R"("tools": [{"name": "f", "strict": true}])",
        R"("tools": [{"type": "function", "name": "f", "strict": true}])"};
    for (int i = 0; i < 3; ++i) {
        const Json read = Json::parse(kDialects[i].read(tools[i]).tools);
        EXPECT_EQ(read[0]["function"]["strict"], true) << kDialects[i].name;
    }
    for (int i = 1; i < 3; ++i) {
        std::string wrong = tools[i];
        wrong.replace(wrong.find("true"), 4, "\"yes\"");
        EXPECT_EQ(refused([&] { kDialects[i].read(wrong); }), "tools[0].strict") << kDialects[i].name;
    }
}

TEST(Chat, RefusesTheOldNamesOfTools) {
    EXPECT_EQ(refused([] { kDialects[0].read(R"("functions": [{"name": "f"}])"); }), "functions");
    EXPECT_EQ(refused([] { kDialects[0].read(R"("function_call": {"name": "f"})"); }), "function_call");
}

TEST(WrittenMessages, KnowsWhatPeopleAndToolsWrote) {
    WrittenMessages messages(Json::parse(R"([{"role": "system", "content": "S"},
        {"role": "user", "content": [{"type": "text", "text": "Q1"}, {"type": "text", "text": "Q2"}], "name": "n"},
        {"role": "assistant", "content": "A"}, {"role": "tool", "content": "R"}])"));
    EXPECT_EQ(messages.texts(), (std::vector<std::string>{"S", "Q1", "Q2", "R"}));
    EXPECT_EQ(Json::parse(messages.with({"1", "2", "3", "4"})),
              Json::parse(R"([{"role": "system", "content": "1"},
        {"role": "user", "content": [{"type": "text", "text": "2"}, {"type": "text", "text": "3"}], "name": "n"},
        {"role": "assistant", "content": "A"}, {"role": "tool", "content": "4"}])"));
}

TEST(WrittenMessages, TakesAnAnswerThatWasBegun) {
    WrittenMessages messages(
        Json::parse(R"([{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}])"));
    EXPECT_EQ(messages.take_begun_answer(), "A");
    EXPECT_EQ(messages.size(), 1u);
    EXPECT_EQ(messages.take_begun_answer(), "");
}

TEST(WrittenMessages, NamesThePlaceOfWhatItCannotRead) {
    EXPECT_EQ(refused([] { WrittenMessages(Json::array()); }), "messages");
    EXPECT_EQ(refused([] { WrittenMessages(Json::parse(R"([{"content": "x"}])")); }), "messages[0].role");
    for (const char* nothing : {R"([{"role": "user"}])", R"([{"role": "tool", "content": null}])"})
        EXPECT_EQ(refused([&] { WrittenMessages(Json::parse(nothing)); }), "messages[0].content");
    EXPECT_EQ(refused([] { WrittenMessages(Json::parse(R"([{"role": "assistant"}])")); }), "not refused");
    EXPECT_EQ(refused([] { WrittenMessages(Json::parse(R"([{"role": "user", "content": 5}])")); }),
              "messages[0].content");
    EXPECT_EQ(refused([] {
                  WrittenMessages(Json::parse(
                      R"([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])"));
              }),
              "messages[0].content[0]");
}

}  // namespace
}  // namespace coterie::server
