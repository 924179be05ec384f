#include "chat/grammar_lead_in.h"

#include <gtest/gtest.h>

namespace coterie {
namespace {

using Kind = GrammarLeadIn::Kind;

TEST(GrammarLeadIn, FollowsTemplateAndPrompt) {
    EXPECT_EQ(grammar_lead_in("{{ messages }}", "user: hi").kind, Kind::None);
    EXPECT_EQ(grammar_lead_in("{{ '<think></think>' }}", "assistant\n").kind, Kind::Optional);
    EXPECT_EQ(grammar_lead_in("{{ '<think></think>' }}", "assistant\n<think>\n").kind, Kind::Open);
    EXPECT_EQ(grammar_lead_in("{{ '<think></think>' }}", "assistant\n<think>\n\n</think>\n\n").kind,
              Kind::None);
    EXPECT_EQ(grammar_lead_in("[THINK][/THINK]", "[/INST]").close, "[/THINK]");
    EXPECT_EQ(grammar_lead_in("<|channel|>", "<|start|>assistant").kind, Kind::Harmony);
}

TEST(GrammarLeadIn, HarmonyPutsTheConstraintIntoTheFinalChannel) {
    const GrammarPointer grammar = parse_gbnf("root ::= [0-9]+", {Kind::Harmony});
    EXPECT_TRUE(grammar->matches("<|channel|>final<|message|>12"));
    EXPECT_TRUE(grammar->matches("<|channel|>final <|constrain|>json<|message|>12"));
    EXPECT_TRUE(grammar->matches(
        "<|channel|>analysis<|message|>hm, 5?<|end|><|start|>assistant<|channel|>final<|message|>12"));
    EXPECT_FALSE(grammar->matches("12"));
    EXPECT_FALSE(grammar->matches("<|channel|>final<|message|>x"));
}

}  // namespace
}  // namespace coterie
