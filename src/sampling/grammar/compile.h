#pragma once

#include <memory>

#include "sampling/grammar/automaton.h"
#include "sampling/grammar/grammar.h"
#include "sampling/grammar/rule_set.h"

namespace coterie::grammar {

/// Makes the automaton of all rules that `root` needs. Throws InvalidArgument for a rule
/// that calls itself before it has read anything, for a root that can never end, and above the limits of
/// automaton.h and nfa.h. Requires: every rule that is called is defined.
std::unique_ptr<const Automaton> compile(RuleSet& rules, RuleId root);

/// As a Grammar, after the lead-in.
GrammarPointer compile(RuleSet& rules, RuleId root, const GrammarLeadIn& lead_in);

}  // namespace coterie::grammar
