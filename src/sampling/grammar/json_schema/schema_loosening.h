#pragma once

#include <vector>

#include "sampling/grammar/json_schema/schema_document.h"

/// For schemas that need not be kept to the letter: each of these allows all that the schema allows, and
/// more.
namespace coterie::grammar {

/// Leaves out keywords that are not known, in the schema and in all of its parts.
Json without_unknown_keywords(const Json& schema);

/// What may be tried instead of a schema whose keywords cannot stand together, the closest first.
std::vector<Json> looser_schemas(const Json& schema);

}  // namespace coterie::grammar
