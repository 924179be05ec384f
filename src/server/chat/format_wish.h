#pragma once

#include <functional>
#include <memory>

#include "chat/reasoning.h"
#include "server/chat/chat_input.h"
#include "server/json/fields.h"

namespace coterie::server {

/// Reads `response_format` (nested or flat schema), `json_schema` and `grammar`. Throws ApiError for a schema
/// that is missing or a kind that is not known.
FormatWish read_format(const Fields& fields);

/// What holds an answer to a wish; empty for a free one. Compiles it, so that what cannot be expressed is
/// refused now (ApiError naming the place).
std::function<std::unique_ptr<scheduler::TokenConstraint>()> constrain(const FormatWish& wish,
                                                                       const GrammarLeadIn& lead_in,
                                                                       Service& service);

}  // namespace coterie::server
