#include "scheduler/text/stop_matcher.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

namespace coterie::scheduler {
namespace {

struct Result {
    std::string text;
    std::optional<std::string> stop;
    friend bool operator==(const Result&, const Result&) = default;
};

Result in_pieces(const std::string& answer, const std::vector<std::string>& stops, std::size_t piece) {
    StopMatcher matcher(stops);
    Result result;
    for (std::size_t i = 0; i < answer.size(); i += piece)
        result.text += matcher.feed(answer.substr(i, piece));
    result.text += matcher.finish();
    result.stop = matcher.matched();
    return result;
}

TEST(StopMatcher, CutsExactlyBeforeATextThatComesInPieces) {
    for (const std::size_t piece : {1, 2, 3, 100}) {
        EXPECT_EQ(in_pieces("one, two. END of it", {"END"}, piece), (Result{"one, two. ", "END"})) << piece;
    }
}

TEST(StopMatcher, GivesOutWhatOnlyLookedLikeTheBeginning) {
    StopMatcher matcher({"abc"});
    EXPECT_EQ(matcher.feed("xab"), "x");
    EXPECT_EQ(matcher.feed("d"), "abd");
    EXPECT_EQ(matcher.feed("a"), "");
    EXPECT_EQ(matcher.finish(), "a");
    EXPECT_FALSE(matcher.matched());
}

TEST(StopMatcher, TakesTheMatchThatEndsFirst) {
    for (const std::size_t piece : {1, 2, 5}) {
        EXPECT_EQ(in_pieces("xabcd", {"abcd", "b"}, piece), (Result{"xa", "b"})) << piece;
        EXPECT_EQ(in_pieces("xabcd", {"c", "abc"}, piece), (Result{"x", "abc"})) << piece;
    }
}

TEST(StopMatcher, IgnoresEmptyTexts) { EXPECT_EQ(in_pieces("abc", {""}, 1), (Result{"abc", std::nullopt})); }

TEST(StopMatcher, DoesNotDependOnThePieces) {
    const char* given = std::getenv("COTERIE_TEST_SEED");
    const auto seed = given ? std::strtoull(given, nullptr, 10) : 20261130ULL;
    SCOPED_TRACE(testing::Message() << "COTERIE_TEST_SEED=" << seed);
    std::mt19937_64 random(seed);
    const auto text = [&](std::size_t length) {
        std::string letters;
        for (std::size_t i = 0; i < length; ++i) letters += static_cast<char>('a' + random() % 2);
        return letters;
    };
    for (int round = 0; round < 500; ++round) {
        const std::string answer = text(40);
        const std::vector<std::string> stops = {text(1 + random() % 7), text(1 + random() % 7)};
        const Result whole = in_pieces(answer, stops, 40);
        for (const std::size_t piece : {1, 2, 3, 7}) ASSERT_EQ(in_pieces(answer, stops, piece), whole);
    }
}

}  // namespace
}  // namespace coterie::scheduler
