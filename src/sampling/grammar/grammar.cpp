#include "sampling/grammar/grammar.h"

#include <utility>

#include "sampling/grammar/automaton.h"
#include "sampling/grammar/parse_state.h"

namespace coterie {

Grammar::Grammar(std::unique_ptr<const grammar::Automaton> automaton) : automaton_(std::move(automaton)) {}

Grammar::~Grammar() = default;

bool Grammar::matches(std::string_view text) const {
    grammar::ParseState state(*automaton_);
    return state.read(text) && state.may_end();
}

}  // namespace coterie
