#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "expert_cache/policy/policy.h"

namespace coterie::expert_cache {

/// What a policy is made for: one layer. Memory is taken then and never again.
struct PolicySetting {
    std::int32_t experts = 0;
    std::int32_t slots = 0;  ///< experts that may be resident at a time
    /// [experts] uses as a profile counted them, none below 0; `static` needs it.
    std::span<const float> profile = {};
    /// [experts] the tokens that will use each, ascending; `belady` needs it, and it must outlive the policy.
    std::span<const std::vector<std::int64_t>> future = {};
};

enum class PolicyNeeds { Nothing, Profile, Future };

struct PolicyKind {
    std::string_view name;  ///< as --cache-policy takes it
    std::string_view summary;
    PolicyNeeds needs;
    std::unique_ptr<Policy> (*make)(const PolicySetting&);
};

inline constexpr std::string_view kDefaultPolicy = "admit";

/// All kinds, sorted by name.
std::span<const PolicyKind> policy_kinds();

/// Also takes "admit-2-in-64", the default's full name. Throws InvalidArgument for an unknown name, with all
/// known ones.
const PolicyKind& find_policy(std::string_view name);

/// Throws InvalidArgument as `find_policy` does, and where the setting lacks what the kind needs.
std::unique_ptr<Policy> make_policy(std::string_view name, const PolicySetting& setting);

}  // namespace coterie::expert_cache
