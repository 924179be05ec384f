#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace coterie {

/// The tokens at which DRY stops to see a repetition: those whose text contains a breaker. A breaker that is
/// longer than every token is stood for by the longest token that is its end. Throws InvalidArgument for an
/// empty breaker.
std::vector<std::int32_t> dry_breaker_tokens(std::span<const std::string> breakers, std::int32_t vocabulary,
                                             FunctionRef<std::string_view(std::int32_t)> piece);

}  // namespace coterie
