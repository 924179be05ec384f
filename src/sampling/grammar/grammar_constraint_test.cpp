#include "sampling/grammar/grammar_constraint.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "base/error.h"
#include "base/split_mix.h"
#include "sampling/grammar/grammar_for_test.h"
#include "sampling/grammar/mask_cache.h"

namespace coterie {
namespace {

using grammar_test::is_set;
using grammar_test::vocabulary_of;
using ::testing::HasSubstr;

constexpr std::uint64_t kSeed = 20'240'613;

const char* const kJson = R"(
root   ::= object
value  ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? "}" ws
array  ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= "-"? ([0-9] | [1-9] [0-9]{0,15}) ("." [0-9]+)? ([eE] [-+]? [0-9]+)? ws
ws     ::= | " " | "\n" [ \t]{0,20}
)";

const std::vector<std::string> kPieces = {
    "ab",   "abc",   "\"a",     "\":", "\": \"", "{\"",   "\"}",  "}}",   "]}",     "[[",       "],",
    "true", "tru",   "e}",      "12",  "1.5e",   "\\u00", "\\n",  "\xc3", "\xa9 x", "\xf0\x9f", " \n",
    "  ",   "\",\"", "\": {\"", "()",  "))",     "((",    "aaaa", "ba",   "x,",     "\"]}\n"};

const char* const kGrammars[] = {
    kJson,
    "root ::= \"a\"{2,7} | \"ab\"* | [^a]+ \"x\"",
    "root ::= \"(\" root \")\" root | \"\"",
    "root ::= e\ne ::= t (\"+\" t)*\nt ::= \"a\" | \"b\" | \"(\" e \")\" | \"ab\" | \"1\"{1,3}",
    "root ::= s s s\ns ::= \"a\"* x?\nx ::= \"b\" s \"c\" | \"\"",
    "root ::= (\"true\" | \"tru\" | \"t\" [a-z]{2,4}) .{0,3}",
    "root ::= amb amb amb \"x\"?\namb ::= \"a\" | \"aa\" | \"aaa\" amb | [\\u00e0-\\U0001F600]",
};

/// The tokens of the mask, each of which must be what trying the token alone says.
std::vector<std::int32_t> checked_mask(GrammarConstraint& constraint, const GrammarVocabulary& vocabulary) {
    std::vector<std::int32_t> allowed;
    const auto mask = constraint.mask();
    for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
        EXPECT_EQ(is_set(mask, id), constraint.allows(id)) << "token " << id;
        GrammarConstraint copy = constraint;
        if (is_set(mask, id)) {
            EXPECT_NO_THROW(copy.accept(id)) << "token " << id;
            allowed.push_back(id);
        } else {
            EXPECT_THROW(copy.accept(id), Error) << "token " << id;
        }
    }
    return allowed;
}

/// Long tokens are rare among so many single bytes: half of the time one of them is taken.
std::int32_t choose(const std::vector<std::int32_t>& allowed, SplitMix64& random) {
    std::vector<std::int32_t> longer;
    for (const std::int32_t id : allowed) {
        if (id >= 256) longer.push_back(id);
    }
    const auto& from = !longer.empty() && random.next() % 2 == 0 ? longer : allowed;
    return from[random.next() % from.size()];
}

/// A random walk through the language by tokens.
void walk(const GrammarPointer& grammar, const std::shared_ptr<const GrammarVocabulary>& vocabulary,
          SplitMix64& random) {
    GrammarConstraint constraint(grammar, vocabulary);
    std::string text;
    for (int step = 0; step < 40; ++step) {
        SCOPED_TRACE(text);
        const std::vector<std::int32_t> allowed = checked_mask(constraint, *vocabulary);
        ASSERT_FALSE(allowed.empty());
        const std::int32_t chosen = choose(allowed, random);
        constraint.accept(chosen);
        if (vocabulary->is_end(chosen)) {
            EXPECT_TRUE(grammar->matches(text));
            EXPECT_TRUE(constraint.finished());
            return;
        }
        text += vocabulary->bytes(chosen);
    }
}

TEST(GrammarConstraint, MasksEqualTryingEveryToken) {
    const auto vocabulary = vocabulary_of(kPieces);
    SplitMix64 random(kSeed);
    for (const char* text : kGrammars) {
        SCOPED_TRACE(text);
        SCOPED_TRACE(kSeed);
        const GrammarPointer grammar = parse_gbnf(text);
        for (int round = 0; round < 6; ++round) walk(grammar, vocabulary, random);
    }
}

/// Texts of few letters, so that many begin alike: the trie has parts that walks take as they are.
std::vector<std::string> crowded_pieces(SplitMix64& random) {
    const std::vector<std::string> letters = {"a", "b",    "Z",    "7",       "\"", "\\",
                                              "<", "\n",   " ",    "é",       "你", "\xF0\x9F\x98\x80",
                                              "a", "\xC3", "\x80", "\xE4\xBD"};
    std::set<std::string> pieces;
    while (pieces.size() < 500) {
        std::string piece;
        for (std::uint64_t i = 0, length = 2 + random.next() % 5; i < length; ++i) {
            const std::uint64_t kind = random.next() % 3;
            piece += letters[kind == 0 ? random.next() % letters.size() : random.next() % (2 + kind)];
        }
        pieces.insert(piece);
    }
    return {pieces.begin(), pieces.end()};
}

TEST(GrammarConstraint, PartsOfTheTrieThatAreTakenWholeFit) {
    SplitMix64 random(kSeed);
    const auto vocabulary = vocabulary_of(crowded_pieces(random));
    const GrammarLeadIn thoughts = {GrammarLeadIn::Kind::Optional, "<a", "a<b"};
    const GrammarPointer grammars[] = {
        parse_gbnf(kJson),
        parse_gbnf("root ::= .*"),
        parse_gbnf("root ::= [abZé-\\U0001F600]* \"<\"?"),
        parse_gbnf("root ::= w (\" \" w)*\nw ::= [a-z]* d\nd ::= [^<a]*"),
        parse_gbnf("root ::= \"<\"? c{0,900}\nc ::= [^\"\\\\] | \"\\\\\" [a-z]"),
        parse_gbnf("root ::= [0-9]+", thoughts),
        parse_gbnf("root ::= [^你\"]* \"\\\"\""),
        parse_gbnf("root ::= [abZ7]* ([\\u0080-\\U0010FFFF] \"b\"+)?"),
        parse_gbnf("root ::= (c | [é-\\uFFFF])* \"<\"\nc ::= [abZ]{1,2} | \"7<\" [a-z]*"),
        grammar_from_json_schema(R"({"type": "string", "maxLength": 300})"),
        grammar_from_json_schema(R"({"type": "string", "maxLength": 3})"),
        grammar_from_json_schema(R"({"type": "array", "items": {"type": "string", "pattern": "^[a-zé]*$"}})"),
    };
    for (const GrammarPointer& grammar : grammars) {
        SCOPED_TRACE(&grammar - grammars);
        SCOPED_TRACE(kSeed);
        for (int round = 0; round < 2; ++round) walk(grammar, vocabulary, random);
    }
}

TEST(GrammarConstraint, WhatIsPreparedIsWhatAnAnswerWouldHaveComputed) {
    SplitMix64 random(kSeed);
    const auto vocabulary = vocabulary_of(crowded_pieces(random));
    const GrammarPointer grammar = parse_gbnf(kJson);
    GrammarConstraint cold(grammar, vocabulary);
    GrammarConstraint warm(grammar, vocabulary);
    warm.prepare(std::chrono::minutes(1));
    for (int step = 0; step < 30; ++step) {
        const std::vector<std::int32_t> allowed = checked_mask(cold, *vocabulary);
        ASSERT_TRUE(std::ranges::equal(cold.mask(), warm.mask())) << "step " << step << ", seed " << kSeed;
        const std::int32_t chosen = choose(allowed, random);
        if (vocabulary->is_end(chosen)) break;
        cold.accept(chosen);
        warm.accept(chosen);
    }
}

TEST(GrammarConstraint, ACacheWithoutMemoryGivesTheSameMasks) {
    const auto vocabulary = vocabulary_of(kPieces);
    for (const char* text : kGrammars) {
        const GrammarPointer grammar = parse_gbnf(text);
        GrammarConstraint constraint(grammar, vocabulary);
        grammar::MaskCache cache(grammar, vocabulary, 0);
        const grammar::ParseState state(grammar->automaton());
        std::vector<std::uint64_t> mask(vocabulary->mask_words());
        cache.fill(state, mask);
        for (std::int32_t id = 0; id < vocabulary->size(); ++id) {
            if (vocabulary->is_end(id)) continue;
            EXPECT_EQ(is_set(mask, id), constraint.allows(id)) << text << id;
        }
        EXPECT_EQ(cache.bytes(), 0u);
    }
}

/// What a random parse writes: derives from the automaton itself, byte by byte.
std::string random_sentence(const Grammar& grammar, SplitMix64& random) {
    grammar::ParseState state(grammar.automaton());
    std::string text;
    for (int step = 0; step < 400 && !(state.may_end() && random.next() % 8 == 0); ++step) {
        std::vector<char> fitting;
        for (int byte = 0; byte < 256; ++byte) {
            const char c = static_cast<char>(byte);
            if (state.can_read({&c, 1})) fitting.push_back(c);
        }
        if (fitting.empty()) break;
        const char chosen = fitting[random.next() % fitting.size()];
        EXPECT_TRUE(state.read({&chosen, 1}));
        text += chosen;
    }
    return state.may_end() ? text : "";
}

TEST(GrammarConstraint, SentencesAreAcceptedHoweverTheyAreCutIntoTokens) {
    const auto vocabulary = vocabulary_of(kPieces);
    SplitMix64 random(kSeed);
    int sentences = 0;
    for (const char* text : kGrammars) {
        SCOPED_TRACE(text);
        const GrammarPointer grammar = parse_gbnf(text);
        GrammarConstraint start(grammar, vocabulary);
        for (int round = 0; round < 60; ++round) {
            const std::string sentence = random_sentence(*grammar, random);
            if (!grammar->matches(sentence)) continue;
            ++sentences;
            GrammarConstraint constraint = start.fresh();
            for (std::size_t at = 0; at < sentence.size();) {
                std::vector<std::int32_t> fitting;
                for (std::int32_t id = 0; id < vocabulary->size(); ++id) {
                    const std::string_view piece = vocabulary->bytes(id);
                    if (!piece.empty() && std::string_view(sentence).substr(at).starts_with(piece))
                        fitting.push_back(id);
                }
                const std::int32_t id = fitting[random.next() % fitting.size()];
                ASSERT_TRUE(is_set(constraint.mask(), id)) << sentence << " at " << at << ", seed " << kSeed;
                ASSERT_NO_THROW(constraint.accept(id));
                at += vocabulary->bytes(id).size();
            }
            EXPECT_TRUE(constraint.may_end());
        }
    }
    EXPECT_GT(sentences, 150);
}

TEST(GrammarConstraint, KnowsWhenItIsFinished) {
    const auto vocabulary = vocabulary_of({"ab"});
    const std::int32_t end = 257;
    GrammarConstraint constraint(parse_gbnf("root ::= \"ab\" \"c\"?"), vocabulary);
    EXPECT_FALSE(constraint.may_end());
    EXPECT_FALSE(constraint.allows(end));
    constraint.accept(256);
    EXPECT_TRUE(constraint.may_end());
    EXPECT_FALSE(constraint.finished());
    EXPECT_TRUE(is_set(constraint.mask(), end));
    GrammarConstraint copy = constraint;
    constraint.accept('c');
    EXPECT_TRUE(constraint.finished());
    EXPECT_TRUE(is_set(constraint.mask(), end));
    EXPECT_FALSE(is_set(constraint.mask(), 'c'));
    copy.accept(end);
    EXPECT_TRUE(copy.finished());
    EXPECT_FALSE(copy.allows('c'));
    EXPECT_THROW(copy.accept('c'), Error);
    EXPECT_THROW(copy.accept(-1), Error);
    EXPECT_THROW(copy.accept(258), Error);
}

TEST(GrammarConstraint, TokensWithoutTextAreAllowedByNameOnly) {
    using Kind = GrammarToken::Kind;
    const std::vector<GrammarToken> tokens = {{Kind::Text, "a"},
                                              {Kind::Text, "<|x|>"},
                                              {Kind::Special, "<|x|>"},
                                              {Kind::Never, "a"},
                                              {Kind::End, ""}};
    const auto vocabulary = std::make_shared<const GrammarVocabulary>(tokens);
    GrammarConstraint free(parse_gbnf("root ::= .*"), vocabulary);
    EXPECT_EQ(free.mask()[0], 0b10011u);
    GrammarConstraint named(parse_gbnf("root ::= <|x|> \"a\""), vocabulary);
    EXPECT_EQ(named.mask()[0], 0b00100u);
    named.accept(2);
    EXPECT_EQ(named.mask()[0], 0b00001u);
    try {
        GrammarConstraint missing(parse_gbnf("root ::= <|y|>"), vocabulary);
        FAIL();
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("<|y|>"));
    }
}

/// Byte-level vocabularies have a token for every byte, 0xFF among them, with which automata spell names.
TEST(GrammarConstraint, NoTextTakesPartInTheNameOfASpecialToken) {
    using Kind = GrammarToken::Kind;
    const std::string whole = "\xff<|x|>\xff";
    std::vector<GrammarToken> tokens = {
        {Kind::Special, "<|x|>"}, {Kind::End, ""}, {Kind::Special, "<|x|>\xff\xff<|x|>"}};
    for (std::size_t begin = 0; begin < whole.size(); ++begin) {
        for (std::size_t size = 1; begin + size <= whole.size(); ++size)
            tokens.push_back({Kind::Text, std::string_view(whole).substr(begin, size)});
    }
    const auto vocabulary = std::make_shared<const GrammarVocabulary>(tokens);
    for (const char* text : {"root ::= <|x|> \"x\"", "root ::= <|x|>*"}) {
        GrammarConstraint constraint(parse_gbnf(text), vocabulary);
        std::vector<std::int32_t> allowed = checked_mask(constraint, *vocabulary);
        std::erase(allowed, 1);
        EXPECT_EQ(allowed, std::vector<std::int32_t>{0}) << text;
    }
    GrammarConstraint free(parse_gbnf("root ::= .*"), vocabulary);
    for (const std::int32_t id : checked_mask(free, *vocabulary))
        EXPECT_EQ(tokens[static_cast<std::size_t>(id)].bytes.find('\xff'), std::string_view::npos) << id;
}

TEST(GrammarConstraint, TextThatTheVocabularyCannotWriteIsAnError) {
    const std::vector<GrammarToken> tokens = {{GrammarToken::Kind::Text, "a"}, {GrammarToken::Kind::End, ""}};
    GrammarConstraint constraint(parse_gbnf("root ::= \"ab\""),
                                 std::make_shared<const GrammarVocabulary>(tokens));
    constraint.accept(0);
    EXPECT_THROW(constraint.mask(), Error);
}

TEST(GrammarConstraint, LeadInLeavesThoughtsFree) {
    const GrammarLeadIn optional = {GrammarLeadIn::Kind::Optional, "<think>", "</think>"};
    const GrammarPointer grammar = parse_gbnf("root ::= [0-9]+", optional);
    EXPECT_TRUE(grammar->matches("12"));
    EXPECT_TRUE(grammar->matches("<think>a < b </thin \u4f60</think>\n\n12"));
    EXPECT_TRUE(grammar->matches("<think></think>1"));
    EXPECT_FALSE(grammar->matches("<think>hm</think>x"));
    EXPECT_FALSE(grammar->matches("hm</think>1"));
    const GrammarLeadIn open = {GrammarLeadIn::Kind::Open, "<think>", "</think>"};
    EXPECT_TRUE(parse_gbnf("root ::= [0-9]+", open)->matches("hm</</think>12"));
    EXPECT_FALSE(parse_gbnf("root ::= [0-9]+", open)->matches("12"));
}

TEST(GrammarConstraint, EndlessRightRecursionTakesNoMemory) {
    const GrammarPointer grammar = parse_gbnf("root ::= \"x\" root | \"y\"");
    grammar::ParseState state(grammar->automaton());
    for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(state.read("x"));
    EXPECT_LT(state.stacks().size(), 10u);
}

TEST(GrammarConstraint, MemoryOfALongAnswerIsBounded) {
    const GrammarPointer grammar =
        parse_gbnf("root ::= (a | b)*\na ::= \"<\" a* \">\"\nb ::= \"[\" (a | b)* \"]\"");
    grammar::ParseState state(grammar->automaton());
    for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(state.read(i % 3 == 0 ? "<<>>" : "[[<>][]]"));
    EXPECT_LT(state.stacks().size(), 2000u);
}

TEST(GrammarConstraint, DepthAndAmbiguityHaveLimits) {
    const auto vocabulary = vocabulary_of({});
    GrammarConstraint deep(parse_gbnf("root ::= \"(\" root \")\" | \"\""), vocabulary);
    EXPECT_THROW(
        {
            for (int i = 0; i < 10'000; ++i) deep.accept('(');
        },
        Error);
    std::string many = "root ::= x0";
    for (int i = 1; i < 600; ++i) many += " | x" + std::to_string(i);
    for (int i = 0; i < 600; ++i)
        many += "\nx" + std::to_string(i) + " ::= \"a\" \"" + std::to_string(i) + "\"";
    EXPECT_THROW(GrammarConstraint(parse_gbnf(many), vocabulary), Error);
}

}  // namespace
}  // namespace coterie
