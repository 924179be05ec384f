#include "sampling/candidates.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

#include "base/error.h"
#include "sampling/random.h"

namespace coterie {
namespace {

std::string refusal(const std::vector<float>& logits) {
    Candidates candidates;
    try {
        candidates.load(logits);
    } catch (const Error& error) {
        return error.what();
    }
    return "accepted";
}

/// Few different values, so that there are many ties.
std::vector<float> random_logits(std::size_t count) {
    Random random(11);
    std::vector<float> logits(count);
    for (float& logit : logits) logit = std::floor(static_cast<float>(random.uniform()) * 500);
    return logits;
}

TEST(Candidates, NamesTheTokenOfALogitThatIsNoNumber) {
    EXPECT_THAT(refusal({1, 2, NAN, 3}), testing::HasSubstr("logit nan for token 2"));
    EXPECT_THAT(refusal({1, INFINITY}), testing::HasSubstr("logit inf for token 1"));
    EXPECT_THAT(refusal({-INFINITY, -INFINITY}), testing::HasSubstr("no token a finite logit"));
    EXPECT_EQ(refusal({1, -INFINITY}), "accepted");
}

TEST(Candidates, EveryPrefixIsThatOfAFullSort) {
    const std::vector<float> logits = random_logits(5000);
    std::vector<std::int32_t> expected(logits.size());
    std::iota(expected.begin(), expected.end(), 0);
    std::stable_sort(expected.begin(), expected.end(), [&](std::int32_t a, std::int32_t b) {
        return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
    });
    Candidates candidates;
    for (const std::size_t count : {1, 40, 512, 513, 4999, 5000, 9999}) {
        candidates.load(logits);
        candidates.sort_prefix(count);
        for (std::size_t i = 0; i < std::min(count, logits.size()); ++i)
            ASSERT_EQ(candidates[i].id, expected[i]);
    }
}

TEST(Candidates, PrefixesMayGrow) {
    Candidates growing;
    growing.load(random_logits(5000));
    for (const std::size_t count : {3, 100, 2000}) growing.sort_prefix(count);
    Candidates whole;
    whole.load(random_logits(5000));
    whole.sort_prefix(5000);
    for (std::size_t i = 0; i < 2000; ++i) ASSERT_EQ(growing[i].id, whole[i].id);
}

TEST(Candidates, KeepMassTakesTheFewestInOrder) {
    for (const double p : {0.0, 0.001, 0.1, 0.5, 0.99, 1.0}) {
        Candidates candidates;
        candidates.load(random_logits(5000));
        candidates.change_logits([](const Candidate& candidate) { return candidate.logit * 0.01f; });
        candidates.softmax();
        std::vector<Candidate> expected(candidates.items().begin(), candidates.items().end());
        std::sort(expected.begin(), expected.end(), ranks_before);
        double sum = 0;
        std::size_t count = 0;
        while (count == 0 || (sum < p && count < expected.size())) sum += expected[count++].probability;
        candidates.keep_mass(p, ranks_before);
        ASSERT_EQ(candidates.size(), count) << p;
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(candidates[i].id, expected[i].id) << p;
    }
}

TEST(Candidates, SoftmaxAddsUpToOneOverWhatIsLeft) {
    Candidates candidates;
    candidates.load(random_logits(1000));
    candidates.sort_prefix(10);
    candidates.keep_first(10);
    candidates.softmax();
    double sum = 0;
    for (const Candidate& candidate : candidates.items()) sum += candidate.probability;
    EXPECT_NEAR(sum, 1, 1e-6);
}

TEST(Candidates, HugeLogitsDoNotOverflow) {
    Candidates candidates;
    candidates.load(std::vector<float>{3e38f, 3e38f, -3e38f});
    candidates.softmax();
    EXPECT_EQ(candidates[0].probability, 0.5f);
    EXPECT_EQ(candidates[2].probability, 0.0f);
}

TEST(Candidates, OneAlwaysStays) {
    Candidates candidates;
    candidates.load(std::vector<float>{1, 2});
    candidates.remove_if([](const Candidate&) { return true; });
    EXPECT_EQ(candidates.size(), 2u);
    candidates.keep_first(0);
    EXPECT_EQ(candidates.size(), 1u);
}

TEST(Candidates, TheBestIsTheLowestIdOnTies) {
    Candidates candidates;
    candidates.load(std::vector<float>{1, 3, 3, 2});
    EXPECT_EQ(candidates.best().id, 1);
}

/// Rank order of those that a mask allows, worked out the long way.
std::vector<std::int32_t> ranked(const std::vector<float>& logits, const std::vector<std::uint64_t>& mask) {
    Candidates all;
    all.load(logits);
    all.sort_prefix(all.size());
    std::vector<std::int32_t> ids;
    for (const Candidate& candidate : all.items()) {
        const auto id = static_cast<std::size_t>(candidate.id);
        if (mask.empty() || (id / 64 < mask.size() && (mask[id / 64] >> (id % 64) & 1) != 0))
            ids.push_back(candidate.id);
    }
    return ids;
}

TEST(Candidates, TheBestAloneAreTheBestOfAll) {
    Random random(23);
    for (const std::size_t size : {1, 63, 64, 65, 1000, 5000}) {
        for (int round = 0; round < 20; ++round) {
            std::vector<float> logits(size);
            for (float& logit : logits) logit = std::floor(static_cast<float>(random.uniform()) * 300) - 150;
            if (round % 3 == 0)
                std::fill(logits.begin(), logits.begin() + static_cast<int>(size) / 2, -INFINITY);
            std::vector<std::uint64_t> mask((size + 63) / 64);
            for (std::uint64_t& word : mask)
                word = static_cast<std::uint64_t>(random.uniform() * 0x1p64) | (round % 4 == 0 ? ~0ull : 0);
            mask.back() |= std::uint64_t{1} << ((size - 1) % 64);
            if (round % 2 == 0) mask.clear();
            const std::vector<std::int32_t> expected = ranked(logits, mask);
            for (const std::size_t most : {1, 2, 40, 90}) {
                Candidates candidates;
                candidates.load(logits, {.allowed = mask, .most = most});
                ASSERT_TRUE(
                    std::is_sorted(candidates.items().begin(), candidates.items().end(),
                                   [](const Candidate& a, const Candidate& b) { return a.id < b.id; }));
                const std::size_t count = std::min(most, expected.size());
                candidates.sort_prefix(count);
                ASSERT_GE(candidates.size(), count);
                for (std::size_t i = 0; i < count; ++i)
                    ASSERT_EQ(candidates[i].id, expected[i]) << size << " " << round << " " << most;
            }
        }
    }
}

TEST(Candidates, SomeAreWantedHoweverLow) {
    std::vector<float> logits(1000, -5);
    logits[700] = 3;
    const std::vector<std::int32_t> also{2, 700, 999};
    std::vector<std::uint64_t> mask(16, ~std::uint64_t{0});
    mask[0] = 0;
    Candidates candidates;
    candidates.load(logits, {.allowed = mask, .most = 1, .also = also});
    ASSERT_EQ(candidates.size(), 2u);
    EXPECT_EQ(candidates[0].id, 700);
    EXPECT_EQ(candidates[1].id, 999);
    candidates.add_to_logit(999, 10);
    candidates.add_to_logit(2, 100);
    EXPECT_EQ(candidates.best().id, 999);
}

TEST(Candidates, NothingAllowedIsTheRequestsFault) {
    const std::vector<float> logits{1, -INFINITY, 2};
    const std::vector<std::uint64_t> mask{0b10};
    Candidates candidates;
    EXPECT_THROW(candidates.load(logits, {.allowed = mask}), Error);
}

}  // namespace
}  // namespace coterie
