#pragma once

#include <functional>
#include <memory>

#include "server/chat/chat_request.h"
#include "server/service/service.h"

namespace coterie::server {

/// What holds an answer to a wish; empty for a free one. Compiles it, so that what cannot be expressed is
/// refused now (ApiError naming the place).
std::function<std::unique_ptr<scheduler::TokenConstraint>()> constrain(const FormatWish& wish,
                                                                       const GrammarLeadIn& lead_in,
                                                                       Service& service);

}  // namespace coterie::server
