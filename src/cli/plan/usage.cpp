#include "cli/plan/usage.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "base/log.h"
#include "cli/profile_path.h"
#include "expert_cache/profile.h"
#include "gguf/content_hash.h"

namespace coterie::cli::plan {
namespace {

using expert_cache::ModelFacts;
using expert_cache::ProfileLoad;
using expert_cache::ProfileShape;

constexpr const char* kUsageKey = "moe_cache.expert_usage";

/// What fewer tokens have counted is mostly chance.
constexpr double kLeastTokens = 256;

ProfileShape shape_of(const gguf::Archive& archive, const ModelFacts& model) {
    ProfileShape shape{.model_hash = gguf::content_hash(archive),
                       .layers = static_cast<std::int32_t>(model.layers.size()),
                       .experts = 0};
    for (const auto& layer : model.layers) shape.experts = std::max(shape.experts, layer.experts);
    return shape;
}

bool has_seen_enough(const expert_cache::RoutingProfile& profile, const ModelFacts& model) {
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        if (model.layers[i].experts == 0) continue;
        const std::vector<float> uses = profile.uses(static_cast<std::int32_t>(i));
        return std::accumulate(uses.begin(), uses.end(), 0.0) >= kLeastTokens * model.layers[i].experts_used;
    }
    return false;
}

ProfileLoad counts_of_file(const gguf::Archive& archive, const ProfileShape& shape) {
    if (!archive.metadata().has(kUsageKey)) return {};
    std::vector<std::uint32_t> usage;
    for (const std::int64_t count : archive.metadata().integers(kUsageKey)) {
        usage.push_back(static_cast<std::uint32_t>(
            std::clamp<std::int64_t>(count, 0, std::numeric_limits<std::uint32_t>::max())));
    }
    return expert_cache::profile_from_usage(usage, shape);
}

}  // namespace

std::optional<expert_cache::UsageCounts> usage_counts(const gguf::Archive& archive, const ModelFacts& model,
                                                      const std::string& flag) {
    const ProfileShape shape = shape_of(archive, model);
    if (shape.experts == 0) return std::nullopt;
    const ProfilePath path = profile_path(flag, shape.model_hash);
    ProfileLoad load;
    if (!path.file.empty()) load = expert_cache::load_profile(path.file, shape);
    if (!load.ignored.empty()) log::warn("{}", load.ignored);
    if (load.profile && !has_seen_enough(*load.profile, model)) load.profile.reset();
    if (!load.profile) load = counts_of_file(archive, shape);
    if (!load.profile) return std::nullopt;
    expert_cache::UsageCounts counts;
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        const std::vector<float> uses = load.profile->uses(static_cast<std::int32_t>(i));
        counts.emplace_back(uses.begin(), uses.begin() + model.layers[i].experts);
    }
    return counts;
}

}  // namespace coterie::cli::plan
