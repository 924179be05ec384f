#pragma once

#include <string>
#include <string_view>

#include "expert_cache/costs/costs.h"

namespace coterie::expert_cache {

/// Costs as JSON text whose keys are the fields' names, so that a measurement can be kept, shown and edited.
std::string costs_to_json(const Costs& costs);

/// The costs in `text`, checked. Throws InvalidArgument naming `origin` and what is wrong.
Costs costs_from_json(std::string_view text, std::string_view origin);

}  // namespace coterie::expert_cache
