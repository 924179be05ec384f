#include "chat/tools/answer_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace coterie {
namespace {

const std::vector<ToolDefinition> kTools = {
    {"get_weather",
     R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]})"},
    {"now", R"({"type": "object"})"},
};

struct Call {
    std::string name;
    std::string arguments;
};

struct Case {
    ToolFormat format;
    std::string answer;
    std::string reasoning;
    std::string content;
    std::vector<Call> calls;
};

const std::string kDeepSeekOpen = "<\uFF5Ctool\u2581calls\u2581begin\uFF5C>";
const std::string kDeepSeekClose = "<\uFF5Ctool\u2581calls\u2581end\uFF5C>";
const std::string kDeepSeekCall = "<\uFF5Ctool\u2581call\u2581begin\uFF5C>";
const std::string kDeepSeekCallEnd = "<\uFF5Ctool\u2581call\u2581end\uFF5C>";
const std::string kDeepSeekSeparator = "<\uFF5Ctool\u2581sep\uFF5C>";
const std::string kParis = R"({"city": "Paris", "days": 2})";

const std::vector<Case>& cases() {
    static const std::vector<Case> all = {
        {ToolFormat::None, "\n<think></think>\nHi <tool_call>", "", "Hi <tool_call>", {}},
        // Hermes
        {ToolFormat::Hermes, "Hello {\"name\": 1} < there \n", "", "Hello {\"name\": 1} < there \n", {}},
        {ToolFormat::Hermes,
         "<think>\nhm\n</think>\n\nI look.\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": " +
             kParis + "}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n",
         "hm",
         "I look.",
         {{"get_weather", kParis}, {"now", "{}"}}},
        {ToolFormat::Hermes,
         "<tool_call>{\"arguments\": {\"city\": \"}{\\\"\"}, \"name\": \"get_weather\"}</tool_call> and so "
         "on",
         "",
         " and so on",
         {{"get_weather", R"({"city":"}{\""})"}}},
        {ToolFormat::Hermes,
         R"(<tool_call>{"name": "now", "arguments": "{\"a\": 1}"}</tool_call>)",
         "",
         "",
         {{"now", R"({"a": 1})"}}},
        {ToolFormat::Hermes,
         R"(<tool_call>{"name": "now"}</tool_call></tool_call>)",
         "",
         "",
         {{"now", "{}"}}},
        {ToolFormat::Hermes,
         R"(<tool_call>{"name": "now", "arguments": {}} then)",
         "",
         " then",
         {{"now", "{}"}}},
        {ToolFormat::Hermes,
         R"(<tool_call>{"name": "other", "arguments": {}}</tool_call>)",
         "",
         R"(<tool_call>{"name": "other", "arguments": {}}</tool_call>)",
         {}},
        {ToolFormat::Hermes,
         "a <tool_call>no call</tool_call> b",
         "",
         "a <tool_call>no call</tool_call> b",
         {}},
        // Qwen3-Coder
        {ToolFormat::QwenCoder,
         "Sure.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nNew \"York\"\n<b>\n</parameter>\n"
         "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n</"
         "function>\n"
         "</tool_call>",
         "",
         "Sure.",
         {{"get_weather", R"({"city": "New \"York\"\n<b>", "days": 3})"}, {"now", "{}"}}},
        {ToolFormat::QwenCoder,
         "<function=get_weather>\n<parameter=city>\n12\n</parameter>\n</parameter>\n</function>\n</"
         "tool_call> x",
         "",
         " x",
         {{"get_weather", R"({"city": "12"})"}}},
        {ToolFormat::QwenCoder,
         "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n<parameter=days>\nTrue\n</"
         "function>\n</tool_call>",
         "",
         "",
         {{"get_weather", R"({"city": "Rome", "days": true})"}}},
        {ToolFormat::QwenCoder,
         "<tool_call>\n<function=other>\n</function>\n</tool_call>",
         "",
         "<tool_call>\n<function=other>\n</function>\n</tool_call>",
         {}},
        {ToolFormat::QwenCoder,
         "<function=what <function=now>\n</function> x",
         "",
         "<function=what x",
         {{"now", "{}"}}},
        // GLM
        {ToolFormat::Glm,
         "\n<think>I "
         "see</think>\nWell.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>\u5317\u4eac</"
         "arg_value>\n"
         "<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>\n<tool_call>now</tool_call>",
         "I see",
         "Well.",
         {{"get_weather", "{\"city\": \"\u5317\u4eac\", \"days\": 2}"}, {"now", "{}"}}},
        {ToolFormat::Glm,
         "<tool_call>now<arg_key>x</arg_key><arg_value>[1, {}]</arg_value></tool_call>",
         "",
         "",
         {{"now", R"({"x": [1, {}]})"}}},
        {ToolFormat::Glm, "<tool_call>unknown\n</tool_call>", "", "<tool_call>unknown\n</tool_call>", {}},
        {ToolFormat::Glm,
         "<tool_call>what <tool_call>now</tool_call> x",
         "",
         "<tool_call>what x",
         {{"now", "{}"}}},
        // Harmony
        {ToolFormat::Harmony,
         "<|channel|>analysis<|message|>The user asks. <|end|><|start|>assistant<|channel|>commentary "
         "to=functions.get_weather <|constrain|>json<|message|>" +
             kParis + "<|call|>",
         "The user asks. ",
         "",
         {{"get_weather", kParis}}},
        {ToolFormat::Harmony,
         "<|channel|>analysis<|message|>hm<|start|>assistant to=functions.now<|channel|>commentary "
         "json<|message|>{}",
         "hm",
         "",
         {{"now", "{}"}}},
        {ToolFormat::Harmony,
         "<|channel|>commentary<|message|>I look it "
         "up.<|end|><|start|>assistant<|channel|>final<|message|>It is \"ok\".",
         "",
         "I look it up.It is \"ok\".",
         {}},
        {ToolFormat::Harmony, "plain text", "", "plain text", {}},
        {ToolFormat::Harmony,
         "<|channel|>commentary to=functions.other<|message|>{}",
         "",
         "<|channel|>commentary to=functions.other<|message|>{}",
         {}},
        // DeepSeek
        {ToolFormat::DeepSeek31,
         "Look:" + kDeepSeekOpen + kDeepSeekCall + "get_weather" + kDeepSeekSeparator + kParis +
             kDeepSeekCallEnd + kDeepSeekCall + "now" + kDeepSeekSeparator + "{}" + kDeepSeekCallEnd +
             kDeepSeekClose,
         "",
         "Look:",
         {{"get_weather", kParis}, {"now", "{}"}}},
        {ToolFormat::DeepSeek,
         kDeepSeekOpen + kDeepSeekCall + "function" + kDeepSeekSeparator + "get_weather\n```json\n" + kParis +
             "\n```" + kDeepSeekCallEnd + "\n" + kDeepSeekCall + "function" + kDeepSeekSeparator +
             "now\n```json\n{}\n```" + kDeepSeekCallEnd + kDeepSeekClose,
         "",
         "",
         {{"get_weather", kParis}, {"now", "{}"}}},
        {ToolFormat::DeepSeek31, kDeepSeekOpen + "oh", "", kDeepSeekOpen + "oh", {}},
        // Mistral
        {ToolFormat::MistralList,
         "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"P\"}}, {\"name\": \"now\"}]",
         "",
         "",
         {{"get_weather", R"({"city":"P"})"}, {"now", "{}"}}},
        {ToolFormat::MistralArgs,
         "Ok[TOOL_CALLS]get_weather[CALL_ID]abcdefghi[ARGS]" + kParis + "[TOOL_CALLS]now[ARGS]{}",
         "",
         "Ok",
         {{"get_weather", kParis}, {"now", "{}"}}},
        {ToolFormat::MistralArgs, "[TOOL_CALLS]what {", "", "[TOOL_CALLS]what {", {}},
        {ToolFormat::MistralList, "see [1] and [TOOL", "", "see [1] and [TOOL", {}},
    };
    return all;
}

std::vector<AnswerEvent> parse(const Case& test, std::string_view answer, std::size_t chunk) {
    const auto parser = make_answer_parser({.format = test.format, .tools = kTools, .id_seed = 3});
    std::vector<AnswerEvent> events;
    for (std::size_t at = 0; at < answer.size(); at += chunk) parser->feed(answer.substr(at, chunk), events);
    parser->finish(events);
    return events;
}

TEST(AnswerParser, TakesAnswersApartHoweverTheyAreCut) {
    for (const Case& test : cases()) {
        for (const std::size_t chunk : {1u, 2u, 3u, 7u, 100'000u}) {
            SCOPED_TRACE(std::string(tool_format_name(test.format)) + " in pieces of " +
                         std::to_string(chunk) + ": " + test.answer);
            const ParsedAnswer answer = collect(parse(test, test.answer, chunk));
            EXPECT_EQ(answer.reasoning, test.reasoning);
            EXPECT_EQ(answer.content, test.content);
            ASSERT_EQ(answer.calls.size(), test.calls.size());
            for (std::size_t i = 0; i < answer.calls.size(); ++i) {
                EXPECT_EQ(answer.calls[i].name, test.calls[i].name);
                EXPECT_EQ(answer.calls[i].arguments, test.calls[i].arguments);
                EXPECT_EQ(answer.calls[i].id.size(), 9u);
                EXPECT_TRUE(answer.calls[i].complete);
            }
        }
    }
}

// An answer may end anywhere: nothing throws, and what was given out stays what it was.
TEST(AnswerParser, EveryPrefixGivesAPrefixOfTheCalls) {
    for (const Case& test : cases()) {
        const ParsedAnswer whole = collect(parse(test, test.answer, 1));
        for (std::size_t length = 0; length <= test.answer.size(); ++length) {
            SCOPED_TRACE(test.answer.substr(0, length));
            const ParsedAnswer part =
                collect(parse(test, std::string_view(test.answer).substr(0, length), 1));
            ASSERT_LE(part.calls.size(), whole.calls.size());
            for (std::size_t i = 0; i < part.calls.size(); ++i) {
                EXPECT_EQ(part.calls[i].name, whole.calls[i].name);
                EXPECT_EQ(part.calls[i].id, whole.calls[i].id);
                EXPECT_TRUE(whole.calls[i].arguments.starts_with(part.calls[i].arguments));
                EXPECT_TRUE(part.calls[i].complete || i + 1 == part.calls.size());
            }
        }
    }
}

TEST(AnswerParser, ArgumentsStream) {
    const auto parser = make_answer_parser({.format = ToolFormat::Hermes, .tools = kTools});
    std::vector<AnswerEvent> events;
    parser->feed("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\"", events);
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0].kind, AnswerEvent::Kind::CallBegin);
    EXPECT_EQ(events[1].text, "{\"city\"");
    events.clear();
    parser->feed(": \"Par", events);
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].text, ": \"Par");
}

TEST(AnswerParser, ACallWhoseArgumentsAreNoJsonStaysOpen) {
    for (const char* answer : {R"(<tool_call>{"name": "now", "arguments": {"a" 1}}</tool_call>)",
                               R"(<tool_call>{"name": "now", "arguments": {"a": 1)"}) {
        const ParsedAnswer parsed = collect(parse({ToolFormat::Hermes, "", "", "", {}}, answer, 3));
        ASSERT_EQ(parsed.calls.size(), 1u);
        EXPECT_FALSE(parsed.calls[0].complete);
    }
}

TEST(AnswerParser, IdsOfTheModelAreKeptAndOthersDiffer) {
    const auto mistral = collect(
        parse({ToolFormat::MistralArgs, "", "", "", {}}, "[TOOL_CALLS]now[CALL_ID]abcdefghi[ARGS]{}", 2));
    EXPECT_EQ(mistral.calls.at(0).id, "abcdefghi");
    const auto two = collect(parse({ToolFormat::MistralArgs, "", "", "", {}},
                                   "[TOOL_CALLS]now[ARGS]{}[TOOL_CALLS]now[ARGS]{}", 2));
    EXPECT_NE(two.calls.at(0).id, two.calls.at(1).id);
}

TEST(AnswerParser, WithoutToolsNothingIsTakenForACall) {
    const auto parser = make_answer_parser({.format = ToolFormat::Hermes});
    std::vector<AnswerEvent> events;
    const std::string answer = R"(<tool_call>{"name": "now"}</tool_call>)";
    parser->feed(answer, events);
    parser->finish(events);
    EXPECT_EQ(collect(events).content, answer);
}

}  // namespace
}  // namespace coterie
