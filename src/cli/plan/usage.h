#pragma once

#include <optional>
#include <string>

#include "expert_cache/placement/facts.h"
#include "gguf/archive.h"

namespace coterie::cli::plan {

/// How often experts were used: from the profile that `flag` (of --cache-profile) or its default names, where
/// it has seen enough to go by, else from the model file's own counts (`moe_cache.expert_usage`). What does
/// not fit is ignored with one warning.
std::optional<expert_cache::UsageCounts> usage_counts(const gguf::Archive& archive,
                                                      const expert_cache::ModelFacts& model,
                                                      const std::string& flag);

}  // namespace coterie::cli::plan
