#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "server/api/endpoints.h"
#include "server/chat/chat_input.h"
#include "server/json/api_error.h"
#include "server/json/parse.h"
#include "server/service/prompts.h"

namespace coterie::server {
namespace {

constexpr std::size_t kMostTokens = 1 << 20;

Json tokenize(const HttpRequest& request, const Service& service) {
    const Json body = parse_object(request.body);
    const Fields fields(body);
    const auto content = fields.string("content");
    if (!content) refuse_field("content", "is missing");
    const bool special = fields.boolean("parse_special").value_or(true);
    const bool ends = fields.boolean("add_special").value_or(false);
    const std::vector<TokenId> tokens = service.tokenizer().encode(
        *content, {.special = special ? SpecialTokens::Parse : SpecialTokens::Plain,
                   .ends = ends ? TextEnds::Mark : TextEnds::Leave,
                   .plain_ranges = {}});
    if (!fields.boolean("with_pieces").value_or(false)) return {{"tokens", tokens}};
    Json pieces = Json::array();
    for (const TokenId token : tokens) {
        pieces.push_back({{"id", token}, {"piece", service.tokenizer().piece(token)}});
    }
    return {{"tokens", std::move(pieces)}};
}

Json detokenize(const HttpRequest& request, const Service& service) {
    const Json body = parse_object(request.body);
    const Fields fields(body);
    const Json* tokens = fields.array("tokens", kMostTokens);
    if (!tokens) refuse_field("tokens", "is missing");
    if (tokens->empty()) return {{"content", ""}};
    if (!tokens->front().is_number()) refuse_field("tokens[0]", "must be a token's number");
    return {{"content", service.tokenizer().decode(read_prompts(fields, "tokens", service).front(),
                                                   {.control = ControlTokens::Show})}};
}

Json apply_template(const HttpRequest& request, Service& service) {
    const Json body = parse_object(request.body);
    const PreparedChat chat = prepare_chat(read_chat(Fields(body)), service);
    return {{"prompt", chat.text}, {"tokens", chat.tokens}};
}

}  // namespace

void add_tokens(Router& router, Service& service) {
    router.add("POST", "/tokenize", [&service](const HttpRequest& request, const std::string&) {
        return HttpResponse{.body = dump(tokenize(request, service))};
    });
    router.add("POST", "/detokenize", [&service](const HttpRequest& request, const std::string&) {
        return HttpResponse{.body = dump(detokenize(request, service))};
    });
    router.add("POST", "/apply-template", [&service](const HttpRequest& request, const std::string&) {
        return HttpResponse{.body = dump(apply_template(request, service))};
    });
}

}  // namespace coterie::server
