#include "expert_cache/policy/registry.h"

#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "expert_cache/policy/kinds/kinds.h"

namespace coterie::expert_cache {
namespace {

constexpr std::array kKinds{
    PolicyKind{"admit", "enters when used twice in 64 tokens; the least used leaves", PolicyNeeds::Nothing,
               make_admit},
    PolicyKind{"arc", "adapts between recency and frequency", PolicyNeeds::Nothing, make_arc},
    PolicyKind{"belady", "knows the future: the bound for all others", PolicyNeeds::Future, make_belady},
    PolicyKind{"lfu", "the least used leaves", PolicyNeeds::Nothing, make_lfu},
    PolicyKind{"lru", "the least recently used leaves", PolicyNeeds::Nothing, make_lru},
    PolicyKind{"slru", "LRU that protects what is used again", PolicyNeeds::Nothing, make_slru},
    PolicyKind{"static", "keeps the most used of a profile", PolicyNeeds::Profile, make_static},
};

std::string known_names() {
    std::string names;
    for (const PolicyKind& kind : kKinds) fmt::format_to(std::back_inserter(names), " {}", kind.name);
    return names;
}

void check_needs(const PolicyKind& kind, const PolicySetting& setting) {
    if (kind.needs == PolicyNeeds::Future && setting.future.empty()) {
        fail(ErrorCode::InvalidArgument,
             "cache policy '{}' knows the future, which only 'coterie replay' does; the default is '{}'",
             kind.name, kDefaultPolicy);
    }
    if (kind.needs == PolicyNeeds::Profile && setting.profile.empty()) {
        fail(ErrorCode::InvalidArgument,
             "cache policy '{}' places experts by a routing profile, and there is none; the default is '{}'",
             kind.name, kDefaultPolicy);
    }
}

}  // namespace

std::span<const PolicyKind> policy_kinds() { return kKinds; }

const PolicyKind& find_policy(std::string_view name) {
    constexpr std::string_view kFullName = "admit-2-in-64";
    if (name == kFullName) name = kDefaultPolicy;
    for (const PolicyKind& kind : kKinds) {
        if (kind.name == name) return kind;
    }
    fail(ErrorCode::InvalidArgument, "there is no cache policy '{}'; known are{}", name, known_names());
}

std::unique_ptr<Policy> make_policy(std::string_view name, const PolicySetting& setting) {
    const PolicyKind& kind = find_policy(name);
    COTERIE_CHECK(setting.experts > 0 && setting.slots >= 0);
    check_needs(kind, setting);
    return kind.make(setting);
}

}  // namespace coterie::expert_cache
