#include "sampling/dry_breakers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace coterie {
namespace {

const std::vector<std::string> kPieces{"a", ":", "\n\n", " b:", "User", "er", "r:", "*"};

std::vector<std::int32_t> tokens(const std::vector<std::string>& breakers) {
    return dry_breaker_tokens(breakers, static_cast<std::int32_t>(kPieces.size()), [](std::int32_t token) {
        return std::string_view(kPieces[static_cast<std::size_t>(token)]);
    });
}

TEST(DryBreakers, AreTheTokensThatContainOne) {
    EXPECT_THAT(tokens({"\n", ":"}), testing::ElementsAre(1, 2, 3, 6));
    EXPECT_THAT(tokens({}), testing::IsEmpty());
    EXPECT_THAT(tokens({"?"}), testing::IsEmpty());
}

TEST(DryBreakers, ABreakerOfSeveralTokensIsItsLastOne) {
    EXPECT_THAT(tokens({"User:"}), testing::ElementsAre(6));
}

TEST(DryBreakers, AnEmptyBreakerIsRefused) { EXPECT_THROW(tokens({"*", ""}), Error); }

}  // namespace
}  // namespace coterie
