#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sampling/grammar/rule_set.h"

namespace coterie::grammar {

/// The parts of JSON texts, each a rule that is made when it is first needed. Numbers and white space have
/// bounded lengths, so that an answer cannot run on for ever between two values.
class JsonTexts {
  public:
    explicit JsonTexts(RuleSet& rules) : rules_(rules) {}

    /// At most one space, or a line's end and up to 20 spaces or tabs.
    ExpressionId space();
    ExpressionId any_string();
    /// One character within a string, as itself or escaped.
    ExpressionId any_character();
    /// One of these characters within a string: as itself, or by the shortest escape where JSON asks for it.
    ExpressionId character(std::vector<CodeRange> ranges);
    ExpressionId any_integer();
    ExpressionId any_number();
    ExpressionId any_value();
    ExpressionId any_object();
    ExpressionId any_array();

    /// "name" of a member, none of `taken`, without escapes.
    ExpressionId name_except(std::vector<std::string> taken);
    /// `{`, members from point 0 of a list, `}`.
    ExpressionId member(ExpressionId name, ExpressionId value);
    ExpressionId object(ExpressionId members);
    ExpressionId array(ExpressionId elements);
    ExpressionId comma();

    RuleSet& rules() { return rules_; }

  private:
    template <typename Make>
    ExpressionId shared(std::string_view name, Make make);
    ExpressionId list(ExpressionId item);
    ExpressionId name_rest(std::vector<std::u32string> taken, std::size_t depth);

    RuleSet& rules_;
};

}  // namespace coterie::grammar
