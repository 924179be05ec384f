#include "server/chat/format_wish.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>

#include "server/json/api_error.h"
#include "server/json/parse.h"

namespace coterie::server {
namespace {

FormatWish schema_wish(const Json& schema, const std::string& path) {
    if (!schema.is_object() && !schema.is_boolean()) refuse_field(path, "must be a JSON schema, an object");
    return {FormatWish::Kind::JsonSchema, dump(schema), path};
}

/// The schema of a format; both spellings, the nested one first. Null where there is none.
const Json* find_schema(const Fields& format, std::string& path) {
    const auto nested = format.object("json_schema");
    const Fields& holder = nested && (nested->has("schema") || !format.has("schema")) ? *nested : format;
    path = holder.path("schema");
    if (nested && !holder.has("schema")) refuse_field(path, "is missing");
    return holder.find("schema");
}

/// A format whose kind is not said is one with a schema, or is refused: an answer is never left free by
/// mistake.
std::string read_type(const Fields& format) {
    if (const auto type = format.word("type", {"text", "json_object", "json_schema"})) return *type;
    if (format.has("json_schema")) return "json_schema";
    refuse_field(format.path("type"), "is missing; give text, json_object or json_schema");
}

FormatWish read_kind_and_schema(const Fields& format, std::string_view usual_place) {
    const std::string type = read_type(format);
    std::string path;
    const Json* schema = find_schema(format, path);
    if (schema && type == "text")
        refuse_field(format.path("type"), "is text, and there is a schema; give json_schema");
    if (schema) return schema_wish(*schema, path);
    if (type == "json_schema") refuse_field(format.path(usual_place), "is missing");
    if (type == "text") return {};
    return {FormatWish::Kind::JsonObject, {}, format.path("type")};
}

/// A schema says more than "any object" and takes its place; nothing else goes together.
void add(FormatWish next, FormatWish& wish) {
    using Kind = FormatWish::Kind;
    if (next.kind == Kind::Free || (next.kind == Kind::JsonObject && wish.kind == Kind::JsonSchema)) return;
    if (wish.kind != Kind::Free && !(wish.kind == Kind::JsonObject && next.kind == Kind::JsonSchema)) {
        refuse_field(next.path, fmt::format("cannot stand beside {}; give one of the two", wish.path));
    }
    wish = std::move(next);
}

}  // namespace

FormatWish read_format(const Fields& fields, const std::vector<std::optional<Fields>>& own) {
    FormatWish wish;
    if (const auto format = fields.object("response_format"))
        add(read_kind_and_schema(*format, "json_schema.schema"), wish);
    for (const auto& format : own) {
        if (format) add(read_kind_and_schema(*format, "schema"), wish);
    }
    if (const Json* schema = fields.find("json_schema"))
        add(schema_wish(*schema, fields.path("json_schema")), wish);
    if (const auto grammar = fields.string("grammar"); grammar && !grammar->empty())
        add({FormatWish::Kind::Gbnf, *grammar, fields.path("grammar")}, wish);
    return wish;
}

}  // namespace coterie::server
