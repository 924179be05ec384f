#include "expert_cache/prefetch/prefetcher.h"

#include <gmock/gmock.h>
#include <vector>

#include "base/error.h"

namespace coterie::expert_cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<LayerShape> kLayers = {
    {.experts = 0}, {.experts = 8, .expert_bytes = 1}, {.experts = 4, .expert_bytes = 1}};

std::vector<std::int32_t> predict(Prefetcher& prefetcher, std::int32_t layer,
                                  std::vector<std::int32_t> guessed) {
    const auto experts = prefetcher.predict(layer, guessed);
    return {experts.begin(), experts.end()};
}

TEST(Prefetcher, TheRoutersGuessesCountOnce) {
    Prefetcher prefetcher(kLayers, Prefetch::Router);
    EXPECT_THAT(predict(prefetcher, 1, {3, 5, 3}), ElementsAre(3, 5));
    EXPECT_THAT(predict(prefetcher, 2, {}), IsEmpty());
}

TEST(Prefetcher, TemporalTakesWhatTheLastStepChose) {
    Prefetcher prefetcher(kLayers, Prefetch::Temporal);
    EXPECT_THAT(predict(prefetcher, 1, {1}), IsEmpty());
    const std::vector<std::int32_t> chosen = {6, 2};
    prefetcher.score(1, chosen, [](std::int32_t) { return true; });
    EXPECT_THAT(predict(prefetcher, 1, {1}), ElementsAre(2, 6));
}

TEST(Prefetcher, BothTakesTheUnion) {
    Prefetcher prefetcher(kLayers, Prefetch::Both);
    const std::vector<std::int32_t> chosen = {6, 2};
    prefetcher.score(1, chosen, [](std::int32_t) { return true; });
    EXPECT_THAT(predict(prefetcher, 1, {2, 0}), ElementsAre(2, 0, 6));
}

TEST(Prefetcher, KeepsTheScore) {
    Prefetcher prefetcher(kLayers, Prefetch::Router);
    predict(prefetcher, 1, {0, 1, 2, 3});
    for (const std::int32_t expert : {0, 1, 2}) prefetcher.started(1, expert);
    const std::vector<std::int32_t> chosen = {0, 1, 3, 7};
    prefetcher.score(1, chosen, [](std::int32_t expert) { return expert != 1; });
    const PrefetchStatistics& score = prefetcher.statistics();
    EXPECT_EQ(score.predicted, 4u);
    EXPECT_EQ(score.right, 3u);    // 0, 1, 3
    EXPECT_EQ(score.started, 3u);  // 0, 1, 2
    EXPECT_EQ(score.in_time, 1u);  // 0
    EXPECT_EQ(score.late, 1u);     // 1
}

TEST(Prefetcher, UnknownModesAreNamed) {
    EXPECT_EQ(parse_prefetch("both"), Prefetch::Both);
    try {
        parse_prefetch("always");
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "--prefetch always: use off, router, temporal or both");
    }
}

}  // namespace
}  // namespace coterie::expert_cache
