#pragma once

#include <string_view>

#include "sampling/grammar/rule_set.h"

namespace coterie::grammar {

/// Adds the rules of a JSON schema to others; the rule of its values. Throws as grammar_from_json_schema.
RuleId add_schema_rules(RuleSet& rules, std::string_view schema);

/// Adds any JSON object.
ExpressionId add_any_object(RuleSet& rules);

}  // namespace coterie::grammar
