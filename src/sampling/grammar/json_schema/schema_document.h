#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace coterie::grammar {

using Json = nlohmann::ordered_json;

/// Where in the schema something stands: a JSON pointer, for errors.
struct Place {
    std::string pointer;
    int depth = 0;

    Place operator/(std::string_view key) const;
};

/// Ends the request: "JSON schema, at /properties/a: ...".
[[noreturn]] void refuse(const Place& place, std::string_view problem);

/// Reads a schema's text. Throws InvalidArgument for what is no JSON and for absurd sizes: above 512 KiB, 100
/// levels, 2000 members of one object.
Json parse_schema(std::string_view text);

/// The part of the document that a reference names: "#" or "#/a/b". Others are refused, as is one to nothing.
const Json& resolve_reference(const Json& document, const std::string& reference, const Place& place);

/// Follows `$ref` as long as it is all that a schema says. Refuses a chain that comes back to itself.
const Json& follow_references(const Json& document, const Json& schema, const Place& place);

/// Whether the keyword, with this value, can be honoured or says nothing about values.
bool is_known(const std::string& keyword, const Json& value);

/// Whether the keyword says something about values, unlike `title`, `$defs` and their like. Refuses one that
/// is not known.
bool is_assertion(const std::string& keyword, const Json& value, const Place& place);
bool has_assertions(const Json& schema, const Place& place);

/// The schema without what `is_assertion` calls silent and without the keyword.
Json assertions_without(const Json& schema, std::string_view keyword, const Place& place);

/// Whether null is allowed besides (OpenAPI's `nullable`).
bool is_nullable(const Json& schema, const Place& place);

}  // namespace coterie::grammar
