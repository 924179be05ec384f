#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/split_mix.h"
#include "sampling/grammar/compile.h"
#include "sampling/grammar/grammar_constraint.h"
#include "sampling/grammar/grammar_for_test.h"
#include "sampling/grammar/json_schema/schema_rules.h"

namespace coterie {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kSeed = 41;

struct Case {
    const char* schema;
    std::vector<std::string> valid;
    std::vector<std::string> invalid;
};

const Case kCases[] = {
    {"true", {"1", "{}", "[null]", "\"a\"", "-1.5e3"}, {"", "{", "nul", "01", "1."}},
    {"{}", {"1", "{\"a\": [1, {}]}"}, {"a"}},
    {R"({"type": "boolean"})", {"true", "false"}, {"1", "\"true\""}},
    {R"({"type": ["null", "integer"]})", {"null", "-12"}, {"1.5", "\"\""}},
    {R"({"type": "string"})",
     {"\"\"", "\"\\u00e9\\n \u4f60 \\ud83d\\ude00\""},
     {"\"a", "\"\n\"", "\"\\x\"", "\"\\ud83d\""}},
    {R"({"type": "string", "minLength": 2, "maxLength": 3})",
     {"\"ab\"", "\"\u4f60\u597d\u4f60\"", "\"\\n\\u0041\"", "\"a\\ud83d\\ude00\""},
     {"\"a\"", "\"abcd\"", "\"\\ud83d\\ude00\""}},
    {R"({"type": "object"})", {"{}", "{\"a\": {\"b\": []}}"}, {"[]", "{\"a\"}"}},
    {R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]})",
     {"{\"a\": 1}", "{\"a\":1,\"b\":\"\"}", "{\n  \"a\": 1,\n  \"b\": \"x\"\n}"},
     {"{}", "{\"b\": \"x\"}", "{\"a\": \"1\"}", "{\"a\": 1,}", "{\"a\": 1, \"c\": 2}",
      "{\"a\": 1 \"b\": \"x\"}"}},
    {R"({"properties": {"a": true, "b": true, "c": true}, "required": ["b"]})",
     {"{\"b\": 1}", "{\"a\": 1, \"b\": 2}", "{\"b\": 1, \"c\": {}}", "{\"a\": 1, \"b\": 1, \"c\": 1}"},
     {"{}", "{\"a\": 1}", "{\"a\": 1, \"c\": 1}", "{,\"b\": 1}"}},
    {R"({"type": "object", "properties": {"ab": {"const": 1}}, "additionalProperties": {"type": "boolean"}})",
     {"{}", "{\"ab\": 1}", "{\"ab\": 1, \"a\": true, \"abc\": false}", "{\"\": true}", "{\"x\": true}"},
     {"{\"ab\": true}", "{\"a\": 1}", "{\"ab\": 1, \"ab\": true}"}},
    {R"({"type": "object", "properties": {}})", {"{}", "{ }"}, {"{\"a\": 1}", "[]"}},
    {R"({"type": "object", "properties": {}, "additionalProperties": true})", {"{}", "{\"a\": 1}"}, {"1"}},
    {R"({"type": "object", "properties": {}, "additionalProperties": {"type": "null"}})",
     {"{}", "{\"a\": null}"},
     {"{\"a\": 1}"}},
    {R"({"type": "object", "properties": {}, "required": ["x"]})", {"{\"x\": null}"}, {"{}"}},
    {R"({"type": "object", "required": ["x"]})", {"{\"x\": null}"}, {"{}"}},
    {R"({"type": "object", "properties": {"a\"b/\u00e9": {"const": 1}}})",
     {"{\"a\\\"b/\u00e9\": 1}"},
     {"{\"a\": 1}"}},
    {R"({"enum": ["red", 2, null, {"a": [1]}]})", {"\"red\"", "2", "null", "{\"a\":[1]}"}, {"\"blue\"", "3"}},
    {R"({"enum": ["red", 2, null], "type": ["string", "null"]})", {"\"red\"", "null"}, {"2"}},
    {R"({"const": "a \u00e9\n"})", {"\"a \u00e9\\n\""}, {"\"a\""}},
    {R"({"type": "array"})", {"[]", "[1, \"a\", []]"}, {"{}", "[1,]"}},
    {R"({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3})",
     {"[1]", "[1, 2, 3]", "[\n  1,\n  2\n]"},
     {"[]", "[1, 2, 3, 4]", "[\"a\"]", "[1,, 2]"}},
    {R"({"items": {"type": "null"}, "minItems": 2})",
     {"[null,null]", "[null, null, null]"},
     {"[null]", "[]"}},
    {R"({"items": true, "maxItems": 0, "type": "array"})", {"[]"}, {"[1]"}},
    {R"({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"const": 0}})",
     {"[]", "[\"a\"]", "[\"a\", 1]", "[\"a\", 1, 0, 0]"},
     {"[1]", "[\"a\", \"b\"]", "[\"a\", 1, 1]"}},
    {R"({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": false, "minItems": 1})",
     {"[1]", "[1, 2]"},
     {"[]", "[1, 2, 3]"}},
    {R"({"items": [{"const": 1}], "additionalItems": {"const": 2}})", {"[1, 2, 2]"}, {"[2]"}},
    {R"({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]})",
     {"1", "\"a\""},
     {"\"ab\"", "null"}},
    {R"({"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"],
         "anyOf": [{"properties": {"x": {"type": "integer"}}, "required": ["x"]}, {"properties": {"y": {"type": "null"}}, "required": ["y"]}]})",
     {"{\"k\": \"a\", \"x\": 1}", "{\"k\": \"a\", \"y\": null}"},
     {"{\"k\": \"a\"}", "{\"x\": 1}"}},
    {R"({"oneOf": [{"type": "integer"}, {"type": "string"}]})", {"1", "\"a\""}, {"null"}},
    {R"({"oneOf": [{"properties": {"t": {"const": "a"}, "v": {"type": "integer"}}, "required": ["t", "v"], "type": "object"},
                   {"properties": {"t": {"const": "b"}}, "required": ["t"], "type": "object"}]})",
     {"{\"t\": \"a\", \"v\": 1}", "{\"t\": \"b\"}"},
     {"{\"t\": \"a\"}", "{\"t\": \"c\"}"}},
    {R"({"allOf": [{"properties": {"a": {"type": "number"}}, "required": ["a"]}, {"properties": {"a": {"type": "integer"}, "b": {"const": 1}}}]})",
     {"{\"a\": 1}", "{\"a\": 1, \"b\": 1}"},
     {"{\"a\": 1.5}", "{\"b\": 1}"}},
    {R"({"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 5}, {"minimum": 4}]})",
     {"4", "5"},
     {"3", "6"}},
    {R"({"$defs": {"n": {"type": "integer"}}, "type": "array", "items": {"$ref": "#/$defs/n"}})",
     {"[1]"},
     {"[\"a\"]"}},
    {R"({"$defs": {"a/b~": {"const": 1}}, "$ref": "#/$defs/a~1b~0"})", {"1"}, {"2"}},
    {R"({"$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["v", "next"]}}, "$ref": "#/$defs/node"})",
     {"{\"v\": 1, \"next\": null}", "{\"v\": 1, \"next\": {\"v\": 2, \"next\": null}}"},
     {"{\"v\": 1}", "{\"v\": 1, \"next\": 2}"}},
    {R"({"type": "array", "items": {"$ref": "#"}})", {"[]", "[[], [[]]]"}, {"[1]"}},
    {R"({"$ref": "#/$defs/a", "description": "d", "$defs": {"a": {"type": "object", "properties": {"x": {"const": 1}}}}, "required": ["x"]})",
     {"{\"x\": 1}"},
     {"{}"}},
    {R"({"type": "integer", "minimum": -5, "exclusiveMaximum": 12})",
     {"-5", "0", "11"},
     {"-6", "12", "-0", "00"}},
    {R"({"type": "integer", "exclusiveMinimum": 1.5, "maximum": 3.5})", {"2", "3"}, {"1", "4"}},
    {R"({"type": "integer", "minimum": 100})", {"100", "12345"}, {"99", "-100"}},
    {R"({"type": "number", "minimum": 0, "maximum": 1})",
     {"0", "1", "0.5", "1.0", "0.0"},
     {"-0.1", "1.01", "2", "1e0"}},
    {R"({"type": "number", "exclusiveMinimum": 0, "maximum": 1.25})",
     {"0.1", "1.25", "1.250", "1.2", "1"},
     {"0", "0.0", "1.26", "1.2501"}},
    {R"({"type": "number", "minimum": -2.5})", {"-2.5", "-2.49", "0", "1000.5", "-1"}, {"-2.51", "-3"}},
    {R"({"type": "string", "pattern": "^[a-z]{2,3}$"})", {"\"ab\""}, {"\"a\"", "\"abcd\"", "\"AB\""}},
    {R"({"type": "string", "pattern": "ab"})", {"\"ab\"", "\"xaby \\n\""}, {"\"a b\""}},
    {R"({"type": "string", "pattern": "^\\d+(\\.\\d*)?$|^none$"})",
     {"\"12\"", "\"1.\"", "\"none\""},
     {"\"x1\"", "\"none1\""}},
    {R"({"type": "string", "pattern": "^[^a\"]\\\\\\w?$"})",
     {"\"b\\\\x\"", "\"\\n\\\\\""},
     {"\"a\\\\\"", "\"\\\"\\\\\""}},
    {R"({"type": "string", "pattern": "^(?:a|(?<n>b))+?[\\]\\-x]$"})", {"\"ab]\"", "\"a-\""}, {"\"]\""}},
    {R"({"type": "string", "format": "date"})",
     {"\"2024-02-29\"", "\"2023-12-31\"", "\"2000-02-29\""},
     {"\"2023-02-29\"", "\"1900-02-29\"", "\"2023-04-31\"", "\"2023-13-01\""}},
    {R"({"type": "string", "format": "date-time"})",
     {"\"2024-01-01T23:59:59Z\"", "\"2024-01-01T00:00:00.123+02:00\""},
     {"\"2024-01-01T24:00:00Z\"", "\"2024-01-01\""}},
    {R"({"type": "string", "format": "email", "pattern": "^[a-z]+@[a-z]+$"})",
     {"\"a@b\""},
     {"\"A@b\"", "\"a.b@c\"", "\"a\""}},
    {R"x({"type": "string", "format": "email", "pattern": "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$"})x",
     {"\"a@b.org\"", "\"a.b'c.d+@e-f.g.org\""},
     {"\".a@b.org\"", "\"a..b@c.org\"", "\"a.@b.org\"", "\"a'@b.org\"", "\"a@b\"", "\"@b.org\"",
      "\"a@-b.org\"", "\"a@b.o\""}},
    {R"({"type": "string", "format": "of their own", "pattern": "^c[0-9]$"})", {"\"c1\""}, {"\"c\""}},
    {R"({"type": "string", "nullable": true})", {"\"a\"", "null"}, {"1"}},
    {R"({"type": "string", "nullable": false})", {"\"a\""}, {"null"}},
    {R"({"enum": ["a"], "nullable": true})", {"\"a\"", "null"}, {"\"b\""}},
    {R"({"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n", "nullable": true})",
     {"1", "null"},
     {"\"\""}},
    {R"({"allOf": [{"type": "integer", "nullable": true}, {"type": "integer"}]})", {"1"}, {"null"}},
    {R"({"allOf": [{"type": "integer", "nullable": true}, {"minimum": 3, "nullable": true}]})",
     {"3", "null"},
     {"2", "\"a\""}},
    {R"({"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": {"type": "integer"}})",
     {"{}", "{\"a\": 1}"},
     {"{\"a\": null}"}},
    {R"({"type": "array", "uniqueItems": false, "minItems": 1})", {"[1, 1]"}, {"[]"}},
    {R"({"type": "string", "contentEncoding": "base64", "maxLength": 1})", {"\"a\""}, {"\"ab\""}},
    {R"({"type": "string", "format": "uuid"})", {"\"123e4567-e89b-12d3-a456-426614174000\""}, {"\"123\""}},
    {R"({"type": "string", "format": "ipv4"})", {"\"192.168.0.255\""}, {"\"256.1.1.1\"", "\"01.1.1.1\""}},
    {R"({"type": "string", "format": "email"})", {"\"a.b@example.org\""}, {"\"a@\"", "\"@b\""}},
    {R"({"type": "string", "format": "duration"})",
     {"\"P1Y2M3D\"", "\"PT5M\"", "\"P2W\""},
     {"\"P\"", "\"PT\""}},
    {R"({"type": "string", "format": "uri"})", {"\"https://example.org/a?b=c#d\""}, {"\"example\""}},
    {R"({"type": "object", "title": "t", "x-order": 1, "default": {}, "properties": {"a": {"description": "d"}}})",
     {"{\"a\": [1]}", "{}"},
     {"[]"}},
};

TEST(JsonSchema, ValidTextsFitAndInvalidOnesDoNot) {
    for (const Case& test : kCases) {
        const GrammarPointer grammar = grammar_from_json_schema(test.schema);
        for (const std::string& text : test.valid)
            EXPECT_TRUE(grammar->matches(text)) << test.schema << "\n<- " << text;
        for (const std::string& text : test.invalid)
            EXPECT_FALSE(grammar->matches(text)) << test.schema << "\n<- " << text;
    }
}

std::string error_of(const std::string& schema) {
    try {
        grammar_from_json_schema(schema);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
        return error.what();
    }
    return "accepted";
}

TEST(JsonSchema, WhatCannotBeExpressedIsRefusedByItsPlace) {
    const std::pair<const char*, const char*> cases[] = {
        {R"({"properties": {"a": {"not": {}}}})", "at /properties/a/not: this keyword"},
        {R"({"type": "array", "uniqueItems": true})", "at /uniqueItems"},
        {R"({"patternProperties": {}})", "at /patternProperties"},
        {R"({"type": "object", "minProperties": 1})", "at /minProperties"},
        {R"({"type": "object", "maxProperties": 1})", "at /maxProperties"},
        {R"({"type": "object", "propertyNames": {"pattern": "a"}})", "at /propertyNames"},
        {R"({"type": "string", "nullable": "yes"})", "at /nullable: it must be true or false"},
        {R"({"type": "number", "multipleOf": 2})", "at /multipleOf"},
        {R"({"if": {}, "then": {}})", "at /if"},
        {R"({"tpye": "string"})", "at /tpye"},
        {R"({"type": "text"})", "at /type: it must be null, boolean"},
        {R"({"type": "string", "format": "idn-email"})",
         "'idn-email' is not supported; known are date, time"},
        {R"({"type": "string", "pattern": "a", "maxLength": 3})", "at /pattern: only one of"},
        {R"({"$ref": "other.json"})", "at /$ref: 'other.json': only references within"},
        {R"({"$ref": "#/$defs/x"})", "'#/$defs/x' refers to nothing"},
        {R"({"$ref": "#/~"})", "is no JSON pointer"},
        {R"({"$ref": "#"})", "calls itself"},
        {R"({"anyOf": [{"$ref": "#"}, {"type": "null"}]})", "calls itself"},
        {R"({"allOf": [{"$ref": "#"}]})", "refer to themselves"},
        {R"({"allOf": [{"pattern": "a"}, {"pattern": "b"}]})", "at /allOf/1/pattern: two schemas"},
        {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
         "at /oneOf: a value might fit both number 0 and number 1"},
        {R"({"oneOf": [{"properties": {"t": {"const": 1}}}, {"properties": {"t": {"const": 2}}}]})",
         "might fit both"},
        {R"({"enum": ["a"], "maxLength": 3})", "at /maxLength: beside 'enum'"},
        {R"({"type": "array", "minItems": 3, "maxItems": 2})", "at /minItems: it is greater"},
        {R"({"type": "array", "maxItems": 1000000})", "at /maxItems: at most"},
        {R"({"type": "array", "minItems": -1})", "at /minItems: it must be a whole number"},
        {R"({"type": "integer", "minimum": "1"})", "at /minimum: it must be a number"},
        {R"({"type": "integer", "minimum": 3, "maximum": 2})", "can never end"},
        {R"({"type": "object", "properties": {"a": false}, "required": ["a"]})", "can never end"},
        {"false", "can never end"},
        {R"({"type": "object", "required": "a"})", "at /required: it must be an array"},
        {R"({"properties": []})", "at /properties: it must be an object"},
        {R"({"properties": {"a/b": 1}})", "at /properties/a~1b: a schema must be"},
        {R"([])", "at its root: a schema must be"},
        {R"({"a)", "no valid JSON at byte"},
        {"", "no valid JSON"},
    };
    for (const auto& [schema, part] : cases) EXPECT_THAT(error_of(schema), HasSubstr(part)) << schema;
}

/// What becomes of schemas that need not be kept to the letter: whatever the schema allows still fits.
const Case kLoosened[] = {
    {R"({"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 2, "minimum": 1}, "b": {"not": {}}}, "required": ["a"]})",
     {"{\"a\": 3}", "{\"a\": 2, \"b\": []}"},
     {"{}", "{\"a\": 0}", "{\"a\": \"\"}", "{\"a\": 2, \"c\": 1}"}},
    {R"({"type": "object", "properties": {}, "patternProperties": {"^x": {}}})", {"{\"x\": 1}"}, {"[]"}},
    {R"({"type": "object", "properties": {"a": true}, "else": {"properties": {"b": true}}})",
     {"{\"b\": 1}"},
     {"1"}},
    {R"({"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=a)b", "maxLength": 2}}})",
     {"{\"a\": \"bc\"}"},
     {"{\"a\": \"abc\"}", "{\"a\": 1}"}},
    {R"({"type": "object", "properties": {"a": {"type": "string", "format": "of their own"}}})",
     {"{\"a\": \"b\"}"},
     {"{\"a\": 1}"}},
    {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})", {"1", "1.5"}, {"\"\""}},
    {R"({"enum": ["a", 1], "maxLength": 3})", {"\"a\"", "1"}, {"\"b\""}},
    {R"({"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 2})", {"[1]"}, {"1"}},
    {R"({"type": "object", "properties": {"a": {}}, "allOf": [{"$ref": "other.json"}]})",
     {"{\"b\": 1}"},
     {"[]"}},
    {R"({"$ref": "other.json"})", {"1", "{}"}, {"x"}},
    {R"({"$defs": {"n": {"type": "integer", "multipleOf": 2}}, "type": "array", "items": {"$ref": "#/$defs/n"}})",
     {"[1]"},
     {"[\"\"]"}},
};

TEST(JsonSchema, WhatCannotBeExpressedIsLeftOutWhereThatIsAskedFor) {
    for (const Case& test : kLoosened) {
        EXPECT_NE(error_of(test.schema), "accepted") << test.schema;
        grammar::RuleSet rules;
        const grammar::RuleId root =
            grammar::add_schema_rules(rules, test.schema, grammar::Unsupported::Loosen);
        const GrammarPointer grammar = grammar::compile(rules, root, {});
        for (const std::string& text : test.valid)
            EXPECT_TRUE(grammar->matches(text)) << test.schema << "\n<- " << text;
        for (const std::string& text : test.invalid)
            EXPECT_FALSE(grammar->matches(text)) << test.schema << "\n<- " << text;
    }
    for (const Case& test : kCases) {
        grammar::RuleSet rules;
        const grammar::RuleId root =
            grammar::add_schema_rules(rules, test.schema, grammar::Unsupported::Loosen);
        const GrammarPointer grammar = grammar::compile(rules, root, {});
        for (const std::string& text : test.invalid)
            EXPECT_FALSE(grammar->matches(text)) << test.schema << "\n<- " << text;
    }
}

TEST(JsonSchema, PatternsThatAreNotRegularOrNoPatternsAreRefused) {
    const std::pair<std::string, const char*> cases[] = {
        {"*a", "nothing stands before"},
        {"(?<!a)b+", "look-around"},
        {"(?=a)", "look-around"},
        {"a{5,2}", "greater than its second"},
        {"a{99999999999}", "20000 repetitions"},
        {std::string(4000, '('), "nest too deep"},
        {std::string(100'000, '('), "longer than 4096"},
        {"a**", "a quantifier follows"},
        {"(a", "')' is missing"},
        {"a)", "unmatched"},
        {"[a", "']' is missing"},
        {"[z-a]", "ends before it begins"},
        {"[a-\\\\d]", "a character at both ends"},
        {"(a)\\\\1", "escape is not supported"},
        {"\\\\bword", "escape is not supported"},
        {"a$b", "at the end only"},
        {"a(^b)", "ends of the whole pattern"},
    };
    for (const auto& [pattern, part] : cases) {
        EXPECT_THAT(error_of(R"({"type": "string", "pattern": ")" + pattern + "\"}"),
                    ::testing::AllOf(HasSubstr("at /pattern: pattern '"), HasSubstr(part)));
    }
}

TEST(JsonSchema, AbsurdSchemasAreRefusedSoon) {
    std::string deep = "{}";
    for (int i = 0; i < 30'000; ++i) deep = "[" + deep;
    EXPECT_THAT(error_of(deep), HasSubstr("nests more than 100 deep"));
    std::string wide = "{\"properties\": {";
    for (int i = 0; i < 30'000; ++i) wide += "\"p" + std::to_string(i) + "\": {},";
    EXPECT_THAT(error_of(wide + "\"q\": {}}}"), HasSubstr("more than 2000 members"));
    EXPECT_THAT(error_of(std::string(1 << 20, ' ')), HasSubstr("bytes; at most"));
    std::string product = "{\"allOf\": [";
    for (int i = 0; i < 40; ++i) {
        product += fmt::format(
            "{}{{\"anyOf\": [{{\"type\": \"string\", \"minLength\": {}}}, {{\"type\": \"null\"}}]}}",
            i == 0 ? "" : ",", i);
    }
    EXPECT_THAT(error_of(product + "]}"), HasSubstr("combinations"));
    grammar::RuleSet rules;
    EXPECT_THROW(grammar::add_schema_rules(
                     rules, R"({"anyOf": [{"allOf": [{"$ref": "#"}]}, {"allOf": [{"$ref": "#"}]}]})",
                     grammar::Unsupported::Loosen),
                 Error);
}

/// A sentence that the grammar allows, chosen byte by byte; empty if none came to its end.
std::string random_sentence(const GrammarPointer& grammar, SplitMix64& random) {
    static const auto vocabulary = grammar_test::vocabulary_of({});
    GrammarConstraint constraint(grammar, vocabulary);
    std::string text;
    for (int step = 0; step < 600; ++step) {
        const auto mask = constraint.mask();
        std::vector<std::int32_t> allowed;
        for (std::int32_t id = 0; id < vocabulary->size(); ++id) {
            if (grammar_test::is_set(mask, id)) allowed.push_back(id);
        }
        // A closing mark half of the time, so that sentences end.
        std::int32_t chosen = allowed[random.next() % allowed.size()];
        for (const std::int32_t id : allowed) {
            const bool closes = id == '"' || id == '}' || id == ']' || vocabulary->is_end(id);
            if (closes && random.next() % 2 == 0) chosen = id;
        }
        if (vocabulary->is_end(chosen)) return text;
        constraint.accept(chosen);
        text += static_cast<char>(chosen);
    }
    return {};
}

TEST(JsonSchema, EverySentenceIsJson) {
    SplitMix64 random(kSeed);
    int sentences = 0;
    for (const Case& test : kCases) {
        const GrammarPointer grammar = grammar_from_json_schema(test.schema);
        for (int round = 0; round < 20; ++round) {
            const std::string text = random_sentence(grammar, random);
            if (text.empty()) continue;
            ++sentences;
            EXPECT_TRUE(nlohmann::json::accept(text)) << test.schema << "\n-> " << text << ", seed " << kSeed;
        }
    }
    EXPECT_GT(sentences, 600);
}

/// A random decimal with up to 3 digits before and 2 behind the point.
std::string random_decimal(SplitMix64& random) {
    const auto value = static_cast<std::int64_t>(random.next() % 4000) - 2000;
    const std::int64_t size = std::abs(value);
    const std::string text = fmt::format("{}{}", value < 0 ? "-" : "", size / 100);
    return size % 100 == 0 ? text : fmt::format("{}.{:02}", text, size % 100);
}

TEST(JsonSchema, NumbersWithinBoundsAndNoOthersFit) {
    SplitMix64 random(kSeed);
    for (int round = 0; round < 200; ++round) {
        std::string low = random_decimal(random);
        std::string high = random_decimal(random);
        if (std::stod(low) > std::stod(high)) std::swap(low, high);
        const bool open_low = random.next() % 2 == 0 && low != high;
        const bool open_high = random.next() % 2 == 0 && low != high;
        const std::string schema = std::string(R"({"type": "number", ")") +
                                   (open_low ? "exclusiveMinimum" : "minimum") + "\": " + low + ", \"" +
                                   (open_high ? "exclusiveMaximum" : "maximum") + "\": " + high + "}";
        SCOPED_TRACE(schema);
        const auto fits = [&](double value) {
            return (open_low ? value > std::stod(low) : value >= std::stod(low)) &&
                   (open_high ? value < std::stod(high) : value <= std::stod(high));
        };
        const GrammarPointer grammar = grammar_from_json_schema(schema);
        for (int i = 0; i < 60; ++i) {
            const std::string text = i == 0 ? low : i == 1 ? high : random_decimal(random);
            if (text == "-0") continue;
            EXPECT_EQ(grammar->matches(text), fits(std::stod(text))) << text << ", seed " << kSeed;
        }
        for (int i = 0; i < 5; ++i) {
            const std::string text = random_sentence(grammar, random);
            EXPECT_TRUE(text.empty() || fits(std::stod(text))) << text << ", seed " << kSeed;
        }
    }
}

TEST(JsonSchema, IntegersWithinBoundsAndNoOthersFit) {
    SplitMix64 random(kSeed);
    for (int round = 0; round < 100; ++round) {
        std::int64_t low = static_cast<std::int64_t>(random.next() % 3000) - 1500;
        std::int64_t high = static_cast<std::int64_t>(random.next() % 3000) - 1500;
        if (low > high) std::swap(low, high);
        const auto grammar =
            grammar_from_json_schema(R"({"type": "integer", "minimum": )" + std::to_string(low) +
                                     ", \"maximum\": " + std::to_string(high) + "}");
        for (std::int64_t value = -1600; value < 1600; value += 7) {
            EXPECT_EQ(grammar->matches(std::to_string(value)), value >= low && value <= high)
                << value << " in " << low << " to " << high;
        }
        EXPECT_TRUE(grammar->matches(std::to_string(low)));
        EXPECT_TRUE(grammar->matches(std::to_string(high)));
        EXPECT_FALSE(grammar->matches(std::to_string(low - 1)));
        EXPECT_FALSE(grammar->matches(std::to_string(high + 1)));
    }
}

TEST(JsonSchema, AnyObjectIsAnObject) {
    const GrammarPointer grammar = grammar_of_json_objects();
    EXPECT_TRUE(grammar->matches(R"({"a": [1, {"b": null}], "c": "d"})"));
    EXPECT_FALSE(grammar->matches("[]"));
    EXPECT_FALSE(grammar->matches("1"));
}

}  // namespace
}  // namespace coterie
