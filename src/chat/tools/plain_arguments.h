#pragma once

#include "chat/tools/tool_definition.h"
#include "sampling/grammar/json_schema/schema_rules.h"
#include "sampling/grammar/rule_set.h"

namespace coterie {

/// How formats write arguments one by one: strings as they are, everything else as JSON.
enum class PlainForm {
    Parameter,    ///< <parameter=KEY>, VALUE, </parameter>, each on lines of its own
    KeyAndValue,  ///< <arg_key>KEY</arg_key>, <arg_value>VALUE</arg_value>
};

/// The arguments of a tool by its schema, in its order. Throws InvalidArgument for a schema that is not a
/// plain list of properties, and, where that is to be refused, for one that no grammar can express: limits on
/// strings, which a text that ends at a mark cannot keep, are among that.
grammar::ExpressionId plain_arguments(grammar::RuleSet& rules, const ToolDefinition& tool, PlainForm form,
                                      grammar::Unsupported unsupported);

/// The properties that the schema lists, any number of times in any order, with any text.
grammar::ExpressionId any_plain_arguments(grammar::RuleSet& rules, const ToolDefinition& tool,
                                          PlainForm form);

}  // namespace coterie
