#include "sampling/grammar/gbnf_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sampling/grammar/grammar.h"

namespace coterie {
namespace {

using ::testing::HasSubstr;

struct Case {
    const char* grammar;
    std::vector<std::string> accepted;
    std::vector<std::string> refused;
};

const Case kCases[] = {
    {"root ::= \"a\" \"b\"", {"ab"}, {"", "a", "abc", "b"}},
    {"root ::= \"\"", {""}, {"a"}},
    {"root ::= \"yes\" | \"no\" | ", {"yes", "no", ""}, {"y", "yesno"}},
    {"root ::= [a-cx]", {"a", "c", "x"}, {"d", "", "ab"}},
    {"root ::= [^a-c]", {"d", "\n", "\u00e9", "\u4f60", "\U0001F600"}, {"a", "", "\xff", "\xed\xa0\x80"}},
    {"root ::= [a-]", {"a", "-"}, {"b"}},
    {"root ::= [\\]\\[\\\\\\^\\-]", {"]", "[", "\\", "^", "-"}, {"a"}},
    {"root ::= .", {"a", "\n", "\U0001F600", "\u0080"}, {"", "aa", "\x80", "\xc0\x80", "\xf4\x90\x80\x80"}},
    {"root ::= .*", {"", "any \u4f60 text"}, {"cut \xe4\xbd", "\xff"}},
    {"root ::= \"\\x41\\u00e9\\U0001F600\\t\\\"\"", {"A\u00e9\U0001F600\t\""}, {"A"}},
    {"root ::= [\\u4e00-\\u9fff]{2}", {"\u4f60\u597d"}, {"\u4f60", "ab"}},
    {"root ::= \"ab\"*", {"", "ab", "abab"}, {"a", "aba"}},
    {"root ::= \"a\"+ \"b\"?", {"a", "aab"}, {"", "b", "abb"}},
    {"root ::= \"a\"{3}", {"aaa"}, {"aa", "aaaa"}},
    {"root ::= \"a\"{2,}", {"aa", "aaaaa"}, {"a"}},
    {"root ::= \"a\"{ 1 , 3 }", {"a", "aa", "aaa"}, {"", "aaaa"}},
    {"root ::= \"a\"{0}", {""}, {"a"}},
    {"root ::= (\"a\"?){2,5}", {"", "a", "aaaaa"}, {"aaaaaa"}},
    {"root ::= (\"a\" | \"b\" (\"c\"\n | \"d\"))+ # comment\n# another\n", {"a", "bc", "bdabc"}, {"b", "c"}},
    {"root ::= x y\nx ::= \"1\"\ny ::= x | \"2\"", {"11", "12"}, {"1", "22"}},
    {"root ::=\n  \"a\"\n  | \"b\"\n\nother ::= \"c\"", {"a", "b"}, {"c"}},
    {"root ::= \"(\" root \")\" | \"\"", {"", "()", "((()))"}, {"(", "(()", "())"}},
    {"root ::= item (\",\" item)*\nitem ::= [0-9]+", {"1", "12,3"}, {"", ",", "1,"}},
    {"root ::= a_b-2\r\na_b-2 ::= \"x\"\r\n", {"x"}, {"y"}},
    {"root ::= list\nlist ::= \"x\" list | \"x\"", {"x", "xxxx"}, {"", "xy"}},
    {"root ::= empty* \"a\"\nempty ::= \"\" | \"b\"", {"a", "bba"}, {"b"}},
};

TEST(GbnfParser, GrammarsAcceptWhatTheySay) {
    for (const Case& test : kCases) {
        const GrammarPointer grammar = parse_gbnf(test.grammar);
        for (const std::string& text : test.accepted)
            EXPECT_TRUE(grammar->matches(text)) << test.grammar << " <- " << text;
        for (const std::string& text : test.refused)
            EXPECT_FALSE(grammar->matches(text)) << test.grammar << " <- " << text;
    }
}

std::string error_of(const std::string& text) {
    try {
        parse_gbnf(text);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
        return error.what();
    }
    return "accepted";
}

TEST(GbnfParser, ErrorsNameLineAndColumn) {
    EXPECT_THAT(error_of("root ::= \"a"), HasSubstr("line 1, column 10: this text in quotes"));
    EXPECT_THAT(error_of("root ::= \"a\"\nx ::= [a-"), HasSubstr("line 2, column 7: this class"));
    EXPECT_THAT(error_of("root ::= (\"a\""), HasSubstr("line 1, column 10: ')' is missing"));
    EXPECT_THAT(error_of("root ::= \"a\" )"), HasSubstr("line 1, column 14: unexpected"));
    EXPECT_THAT(error_of("root = \"a\""), HasSubstr("line 1, column 6: '::='"));
    EXPECT_THAT(error_of("root ::= \"\\q\""), HasSubstr("line 1, column 11: unknown escape"));
    EXPECT_THAT(error_of("root ::= \"\\ud800\""), HasSubstr("no Unicode character"));
    EXPECT_THAT(error_of("root ::= \"\\u12\""), HasSubstr("4 hexadecimal digits"));
    EXPECT_THAT(error_of("root ::= [z-a]"), HasSubstr("line 1, column 11: this range"));
    EXPECT_THAT(error_of("root ::= \"a\"{3,2}"), HasSubstr("line 1, column 13: a repetition's first"));
    EXPECT_THAT(error_of("root ::= \"a\"{x}"), HasSubstr("a number must stand here"));
    EXPECT_THAT(error_of("root ::= \"a\"{1"), HasSubstr("'}' must close"));
    EXPECT_THAT(error_of("root ::= \"\xff\""), HasSubstr("not UTF-8"));
    EXPECT_THAT(error_of("root ::= x\n y ::= \"a\""),
                HasSubstr("line 1, column 10: the rule 'x' is not defined"));
    EXPECT_THAT(error_of("root ::= \"a\"\nroot ::= \"b\""),
                HasSubstr("line 2, column 1: this rule is defined a second"));
    EXPECT_THAT(error_of("root ::= <[12]>"), HasSubstr("called by name"));
    EXPECT_THAT(error_of("root ::= <abc"), HasSubstr("'>' is missing"));
    EXPECT_THAT(error_of(""), HasSubstr("'root' is missing"));
    EXPECT_THAT(error_of("x ::= \"a\""), HasSubstr("'root' is missing"));
}

TEST(GbnfParser, AbsurdGrammarsAreRefused) {
    EXPECT_THAT(error_of("root ::= root \"a\" | \"a\""), HasSubstr("'root' calls itself"));
    EXPECT_THAT(error_of("root ::= a\na ::= b? a \"x\" | \"y\"\nb ::= \"z\""), HasSubstr("'a' calls itself"));
    EXPECT_THAT(error_of("root ::= a\na ::= b\nb ::= a"), HasSubstr("calls itself"));
    EXPECT_THAT(error_of("root ::= \"a\" root"), HasSubstr("can never end"));
    EXPECT_THAT(error_of("root ::= []"), HasSubstr("can never end"));
    EXPECT_THAT(error_of("root ::= \"a\"{100000}"), HasSubstr("at most 20000 repetitions"));
    EXPECT_THAT(error_of("root ::= ((\"abcd\"{15000}){15000}){15000}"), testing::StartsWith("accepted"));
    EXPECT_THAT(error_of("root ::= ([ab]{0,19000} [bc]{0,19000} [cd]{0,19000} [de]{0,19000} \"x\")"),
                HasSubstr("more than 60000 states"));
    EXPECT_THAT(error_of("root ::= (\"a\" | \"b\")* \"a\" (\"a\" | \"b\"){30}"), HasSubstr("too large"));
    EXPECT_THAT(error_of("root ::= " + std::string(5000, '(')), HasSubstr("nest too deep"));
    EXPECT_THAT(error_of("root ::= \"a\"" + std::string(5000, '*')), HasSubstr("too many repetition marks"));
    EXPECT_THAT(error_of(std::string(2 << 20, '#')), HasSubstr("bytes; at most"));
}

}  // namespace
}  // namespace coterie
