#pragma once

#include <string_view>

#include "sampling/grammar/rule_set.h"

namespace coterie::grammar {

/// What becomes of a schema that no grammar can express.
enum class Unsupported {
    Refuse,
    Loosen,  ///< what cannot be kept is left out, and only that: more values fit
};

/// Adds the rules of a JSON schema to others; the rule of its values. Throws as grammar_from_json_schema;
/// with Loosen only for a text that is no JSON or absurdly big.
RuleId add_schema_rules(RuleSet& rules, std::string_view schema,
                        Unsupported unsupported = Unsupported::Refuse);

/// Adds any JSON object.
ExpressionId add_any_object(RuleSet& rules);

}  // namespace coterie::grammar
