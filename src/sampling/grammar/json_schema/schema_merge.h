#pragma once

#include "sampling/grammar/json_schema/schema_document.h"

namespace coterie::grammar {

/// A schema that allows what both allow, or less: parts that cannot be joined are refused. References and
/// `allOf` may stay in it.
Json merge_schemas(const Json& document, const Json& a, const Json& b, const Place& place);

/// Whether surely no value fits both: they allow different types, different constants, or objects that
/// differ in a required property. For `oneOf`.
bool are_disjoint(const Json& document, const Json& a, const Json& b, const Place& place);

}  // namespace coterie::grammar
