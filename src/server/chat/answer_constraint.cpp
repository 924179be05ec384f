#include "server/chat/answer_constraint.h"

#include <fmt/format.h>

#include "server/json/api_error.h"

namespace coterie::server {
namespace {

GrammarPointer compile(const FormatWish& wish, const GrammarLeadIn& lead_in) {
    if (wish.kind == FormatWish::Kind::JsonObject) return grammar_of_json_objects(lead_in);
    if (wish.kind == FormatWish::Kind::JsonSchema) return grammar_from_json_schema(wish.text, lead_in);
    return parse_gbnf(wish.text, lead_in);
}

}  // namespace

std::function<std::unique_ptr<scheduler::TokenConstraint>()> constrain(const FormatWish& wish,
                                                                       const GrammarLeadIn& lead_in,
                                                                       Service& service) {
    if (wish.kind == FormatWish::Kind::Free) return {};
    const std::string key =
        fmt::format("{}\n{}\n{}\n{}\n{}", static_cast<int>(wish.kind), static_cast<int>(lead_in.kind),
                    lead_in.open, lead_in.close, wish.text);
    const auto make = [&service, key, wish, lead_in] {
        return service.constraint(key, [&] { return compile(wish, lead_in); });
    };
    try {
        make();
    } catch (const Error& error) {
        if (error.code() != ErrorCode::InvalidArgument && error.code() != ErrorCode::Unsupported) throw;
        refuse_field(wish.path, error.what());
    }
    return make;
}

}  // namespace coterie::server
