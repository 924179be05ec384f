#pragma once

#include "sampling/grammar/automaton_builder.h"
#include "sampling/grammar/rule_set.h"

namespace coterie::grammar {

/// Throws InvalidArgument, naming the rule, where one calls itself before it has read anything.
void refuse_left_recursion(const AutomatonBuilder& built, const RuleSet& rules);

/// Takes out every edge and call from which the rule's end cannot be reached. Throws InvalidArgument if the
/// root's end cannot.
void remove_dead_ends(AutomatonBuilder& built, RuleId root);

}  // namespace coterie::grammar
