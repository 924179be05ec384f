#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "server/json/fields.h"
#include "server/service/service.h"

namespace coterie::server {

/// Of one request, as OpenAI's API has it; and answers to them, where each may have several.
inline constexpr std::size_t kMostPrompts = 2048;

/// The prompts of a field: a text, tokens, or an array of texts or of arrays of tokens. Special tokens in
/// texts count, and the vocabulary's beginning is added to them. Throws ApiError naming the place.
std::vector<std::vector<TokenId>> read_prompts(const Fields& fields, const std::string& name,
                                               const Service& service);

}  // namespace coterie::server
