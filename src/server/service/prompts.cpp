#include "server/service/prompts.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "server/json/api_error.h"

namespace coterie::server {
namespace {

std::vector<TokenId> encode(const Json& text, const Service& service) {
    return service.tokenizer().encode(
        text.get_ref<const std::string&>(),
        {.special = SpecialTokens::Parse, .ends = TextEnds::Mark, .plain_ranges = {}});
}

std::vector<TokenId> read_tokens(const Json& list, const std::string& path, const Service& service) {
    std::vector<TokenId> tokens;
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (!list[i].is_number_integer()) refuse_field(Fields::at(path, i), "must be a token's number");
        const auto token = list[i].get<std::int64_t>();
        if (token < 0 || token >= service.facts().vocabulary) {
            refuse_field(Fields::at(path, i), fmt::format("token {} is outside the vocabulary of {}", token,
                                                          service.facts().vocabulary));
        }
        tokens.push_back(static_cast<TokenId>(token));
    }
    return tokens;
}

std::vector<TokenId> read_prompt(const Json& prompt, const std::string& path, const Service& service) {
    if (!prompt.is_string() && !prompt.is_array()) refuse_field(path, "must be a text or an array of tokens");
    auto tokens = prompt.is_string() ? encode(prompt, service) : read_tokens(prompt, path, service);
    if (tokens.empty()) refuse_field(path, "is empty; give at least one token");
    return tokens;
}

}  // namespace

std::vector<std::vector<TokenId>> read_prompts(const Fields& fields, const std::string& name,
                                               const Service& service) {
    const Json& prompt = fields.required(name);
    const std::string path = fields.path(name);
    const bool several = prompt.is_array() && !prompt.empty() && !prompt.front().is_number();
    if (!several) return {read_prompt(prompt, path, service)};
    if (prompt.size() > kMostPrompts) {
        refuse_field(path,
                     fmt::format("has {} prompts, and at most {} are taken", prompt.size(), kMostPrompts));
    }
    std::vector<std::vector<TokenId>> prompts;
    for (std::size_t i = 0; i < prompt.size(); ++i) {
        prompts.push_back(read_prompt(prompt[i], Fields::at(path, i), service));
    }
    return prompts;
}

}  // namespace coterie::server
