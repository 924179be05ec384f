#include "chat/tools/tool_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/split_mix.h"
#include "chat/tools/answer_parser.h"
#include "sampling/grammar/parse_state.h"

namespace coterie {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kSeed = 11;

const std::vector<ToolDefinition> kSchemaTools = {
    {"get_weather",
     R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1},
        "unit": {"enum": ["C", "F"]}, "where": {"type": "array", "items": {"type": "number"}, "maxItems": 2}},
        "required": ["city", "unit"]})"},
    {"now", R"({"type": "object", "properties": {}, "additionalProperties": false})"},
};

constexpr ToolFormat kFormats[] = {ToolFormat::Hermes,      ToolFormat::QwenCoder,  ToolFormat::Glm,
                                   ToolFormat::Harmony,     ToolFormat::DeepSeek,   ToolFormat::DeepSeek31,
                                   ToolFormat::MistralList, ToolFormat::MistralArgs};

/// A random sentence in printable ASCII as far as the grammar has it; empty if none came to its end.
std::string random_sentence(const Grammar& grammar, SplitMix64& random) {
    coterie::grammar::ParseState state(grammar.automaton());
    std::string text;
    for (int step = 0; step < 3000; ++step) {
        if (state.may_end() && (state.must_end() || random.next() % 3 == 0)) return text;
        std::vector<char> fitting;
        std::vector<char> structure;
        for (int byte = 1; byte < 256; ++byte) {
            const char c = static_cast<char>(byte);
            if (!state.can_read({&c, 1}) || c == coterie::grammar::kTokenMark) continue;
            if ((c >= ' ' && c <= '~') || c == '\n') fitting.push_back(c);
            if (c == '"' || c == '}' || c == '<' || c == '/' || c == '\n' || byte >= 128)
                structure.push_back(c);
        }
        if (fitting.empty()) fitting = structure;
        const auto& from = !structure.empty() && random.next() % 2 == 0 ? structure : fitting;
        const char chosen = from[random.next() % from.size()];
        EXPECT_TRUE(state.read({&chosen, 1}));
        text += chosen;
    }
    return {};
}

ParsedAnswer parse(ToolFormat format, const std::string& text) {
    const auto parser = make_answer_parser({.format = format, .tools = kSchemaTools});
    std::vector<AnswerEvent> events;
    parser->feed(text, events);
    parser->finish(events);
    return collect(events);
}

TEST(ToolGrammar, EverySentenceIsCallsThatFitTheirSchemas) {
    SplitMix64 random(kSeed);
    std::map<std::string, GrammarPointer> schemas;
    for (const ToolDefinition& tool : kSchemaTools)
        schemas[tool.name] = grammar_from_json_schema(tool.parameters);
    for (const ToolFormat format : kFormats) {
        const GrammarPointer grammar =
            tool_grammar(format, kSchemaTools, {.choice = ToolChoice::Required, .thinks = false});
        int sentences = 0;
        for (int round = 0; round < 25; ++round) {
            const std::string text = random_sentence(*grammar, random);
            if (text.empty()) continue;
            ++sentences;
            SCOPED_TRACE(std::string(tool_format_name(format)) + ": " + text);
            const ParsedAnswer answer = parse(format, text);
            EXPECT_GE(answer.calls.size(), 1u);
            if (format != ToolFormat::Harmony) {
                EXPECT_EQ(answer.content, "");
            }
            for (const ParsedCall& call : answer.calls) {
                EXPECT_TRUE(call.complete);
                EXPECT_TRUE(nlohmann::json::accept(call.arguments)) << call.arguments;
                EXPECT_TRUE(
                    schemas.at(call.name)->matches(nlohmann::ordered_json::parse(call.arguments).dump()))
                    << call.arguments;
            }
        }
        EXPECT_GE(sentences, 3) << tool_format_name(format) << ", seed " << kSeed;
    }
}

TEST(ToolGrammar, AutoLeavesTextFreeAndHoldsCallsToTheirForm) {
    const GrammarPointer grammar =
        tool_grammar(ToolFormat::Hermes, kSchemaTools, {.choice = ToolChoice::Auto});
    EXPECT_TRUE(grammar->matches("Any text, <even> \u4f60 this."));
    EXPECT_TRUE(grammar->matches(""));
    EXPECT_TRUE(grammar->matches(
        "<think>hm</think>\nText\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"));
    EXPECT_FALSE(grammar->matches("Text <tool_call> and more text"));
    EXPECT_FALSE(grammar->matches("<tool_call>\n{\"name\": \"other\", \"arguments\": {}}\n</tool_call>"));
    const GrammarPointer harmony =
        tool_grammar(ToolFormat::Harmony, kSchemaTools, {.choice = ToolChoice::Auto});
    EXPECT_TRUE(harmony->matches("<|channel|>final<|message|>Hello"));
    EXPECT_TRUE(
        harmony->matches("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary "
                         "to=functions.now <|constrain|>json<|message|>{}"));
}

TEST(ToolGrammar, RequiredMeansCalls) {
    ToolGrammarOptions options{.choice = ToolChoice::Required};
    const std::string call = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
    const GrammarPointer grammar = tool_grammar(ToolFormat::Hermes, kSchemaTools, options);
    EXPECT_TRUE(grammar->matches(call));
    EXPECT_TRUE(grammar->matches(call + "\n" + call));
    EXPECT_TRUE(grammar->matches("<think>\nso\n</think>\n\n" + call));
    EXPECT_FALSE(grammar->matches("text" + call));
    EXPECT_FALSE(grammar->matches(""));
    options.parallel = false;
    options.start = AnswerStart::Reasoning;
    const GrammarPointer one = tool_grammar(ToolFormat::Hermes, kSchemaTools, options);
    EXPECT_TRUE(one->matches("so</think>\n" + call));
    EXPECT_FALSE(one->matches(call));
    EXPECT_FALSE(one->matches("so</think>\n" + call + "\n" + call));
}

/// One schema's keyword that cannot be kept costs that keyword, and neither names nor types.
TEST(ToolGrammar, WithoutStrictTheRestOfASchemaHolds) {
    const std::vector<ToolDefinition> tools = {
        {"f", R"({"type": "object", "if": {}, "properties": {"a": {"type": "string", "pattern": "(?=x)y"},
            "b": {"type": "array", "uniqueItems": true, "items": {"type": "integer", "multipleOf": 2}}},
            "required": ["a", "b"]})"}};
    struct Written {
        ToolFormat format;
        std::string before, between, after;
    };
    const Written forms[] = {
        {ToolFormat::Hermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"t\", \"",
         "\": ", "}}\n</tool_call>"},
        {ToolFormat::QwenCoder, "<tool_call>\n<function=f>\n<parameter=a>\nt\n</parameter>\n<parameter=",
         ">\n", "\n</parameter>\n</function>\n</tool_call>"},
        {ToolFormat::Glm, "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>t</arg_value>\n<arg_key>",
         "</arg_key>\n<arg_value>", "</arg_value>\n</tool_call>"},
    };
    for (const Written& form : forms) {
        const GrammarPointer grammar =
            tool_grammar(form.format, tools, {.choice = ToolChoice::Required, .thinks = false});
        const auto call = [&](const std::string& name, const std::string& value) {
            return form.before + name + form.between + value + form.after;
        };
        SCOPED_TRACE(tool_format_name(form.format));
        EXPECT_TRUE(grammar->matches(call("b", "[1, 1]")));
        EXPECT_FALSE(grammar->matches(call("b", "[true]")));
        EXPECT_FALSE(grammar->matches(call("b", "1")));
        EXPECT_FALSE(grammar->matches(call("c", "[1]")));
    }
}

TEST(ToolGrammar, StrictToolsFailClosedAndOthersStayCallable) {
    std::vector<ToolDefinition> tools = {
        {"f", R"({"type": "object", "properties": {"a": {"not": {}}}, "required": ["a"]})", true}};
    for (const ToolFormat format : kFormats) {
        tools[0].strict = true;
        try {
            tool_grammar(format, tools, {});
            FAIL() << tool_format_name(format);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
            EXPECT_THAT(error.what(), HasSubstr("tool 'f': JSON schema, at /properties/a/not"));
        }
        tools[0].strict = false;
        EXPECT_NO_THROW(tool_grammar(format, tools, {}));
    }
    EXPECT_THROW(tool_grammar(ToolFormat::None, kSchemaTools, {}), Error);
    EXPECT_THROW(tool_grammar(ToolFormat::Hermes, {}, {}), Error);
}

}  // namespace
}  // namespace coterie
