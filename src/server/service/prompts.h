#pragma once

#include <string>
#include <vector>

#include "server/json/fields.h"
#include "server/service/service.h"

namespace coterie::server {

/// The prompts of a field: a text, tokens, or an array of texts or of arrays of tokens. Special tokens in
/// texts count, and the vocabulary's beginning is added to them. Throws ApiError naming the place.
std::vector<std::vector<TokenId>> read_prompts(const Fields& fields, const std::string& name,
                                               const Service& service);

}  // namespace coterie::server
