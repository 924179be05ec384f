#include "server/chat/format_wish.h"

#include <nlohmann/json.hpp>

#include "server/json/api_error.h"
#include "server/json/parse.h"

namespace coterie::server {
namespace {

FormatWish schema_wish(const Json& schema, const std::string& path) {
    if (!schema.is_object() && !schema.is_boolean()) refuse_field(path, "must be a JSON schema, an object");
    return {FormatWish::Kind::JsonSchema, dump(schema), path};
}

/// The schema of a response_format; both spellings, the nested one first.
const Json* find_schema(const Fields& format, std::string& path) {
    if (const auto nested = format.object("json_schema")) {
        if (const Json* schema = nested->find("schema")) {
            path = nested->path("schema");
            return schema;
        }
    }
    path = format.path("schema");
    return format.find("schema");
}

FormatWish read_response_format(const Fields& format) {
    const std::string type = format.word("type", {"text", "json_object", "json_schema"}).value_or("text");
    if (type == "text") return {};
    std::string path;
    const Json* schema = find_schema(format, path);
    if (schema) return schema_wish(*schema, path);
    if (type == "json_schema") refuse_field(format.path("json_schema.schema"), "is missing");
    return {FormatWish::Kind::JsonObject, {}, format.path("type")};
}

}  // namespace

FormatWish read_format(const Fields& fields) {
    FormatWish wish;
    if (const auto format = fields.object("response_format")) wish = read_response_format(*format);
    if (const Json* schema = fields.find("json_schema"))
        wish = schema_wish(*schema, fields.path("json_schema"));
    if (const auto grammar = fields.string("grammar"); grammar && !grammar->empty()) {
        if (wish.kind != FormatWish::Kind::Free) {
            refuse_field(fields.path("grammar"), "cannot stand beside a JSON format; give one of the two");
        }
        wish = {FormatWish::Kind::Gbnf, *grammar, fields.path("grammar")};
    }
    return wish;
}

}  // namespace coterie::server
