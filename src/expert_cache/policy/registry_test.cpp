#include "expert_cache/policy/registry.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "base/error.h"

namespace coterie::expert_cache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(std::string_view name) {
    try {
        make_policy(name, {.experts = 4, .slots = 2});
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
        return error.what();
    }
    return "";
}

TEST(RegistryTest, IsSortedAndHoldsTheDefault) {
    const auto by_name = [](const PolicyKind& a, const PolicyKind& b) { return a.name < b.name; };
    EXPECT_TRUE(std::is_sorted(policy_kinds().begin(), policy_kinds().end(), by_name));
    EXPECT_EQ(find_policy(kDefaultPolicy).name, kDefaultPolicy);
    EXPECT_EQ(find_policy("admit-2-in-64").name, kDefaultPolicy);
}

TEST(RegistryTest, AnswersAnUnknownNameWithAllKnownOnes) {
    const std::string message = refusal("mru");
    EXPECT_THAT(message, HasSubstr("'mru'"));
    for (const PolicyKind& kind : policy_kinds()) EXPECT_THAT(message, HasSubstr(std::string(kind.name)));
}

TEST(RegistryTest, SaysWhatAPolicyNeeds) {
    EXPECT_THAT(refusal("belady"), AllOf(HasSubstr("future"), HasSubstr("replay"), HasSubstr("admit")));
    EXPECT_THAT(refusal("static"), AllOf(HasSubstr("profile"), HasSubstr("admit")));
}

}  // namespace
}  // namespace coterie::expert_cache
