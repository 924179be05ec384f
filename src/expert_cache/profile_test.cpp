#include "expert_cache/profile.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <unistd.h>

#include "base/error.h"
#include "base/split_mix.h"

namespace coterie::expert_cache {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::uint64_t kSeed = 20240731;
constexpr ProfileShape kShape{.model_hash = 0x1234567890abcdef, .layers = 3, .experts = 5};

class ProfileTest : public ::testing::Test {
  protected:
    ProfileTest() { fs::create_directories(folder_); }
    ~ProfileTest() override { fs::remove_all(folder_); }

    static RoutingProfile some_profile() {
        RoutingProfile profile(kShape);
        SplitMix64 random(kSeed);
        for (std::int64_t token = 0; token < 300; ++token) {
            for (std::int32_t layer = 0; layer < kShape.layers; ++layer) {
                profile.used({layer, static_cast<std::int32_t>(random.next() % 5)}, token);
            }
        }
        return profile;
    }
    std::vector<std::byte> saved() const {
        some_profile().save(path_);
        std::ifstream file(path_, std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        const auto bytes = std::as_bytes(std::span(text));
        return {bytes.begin(), bytes.end()};
    }
    static std::string reason(std::span<const std::byte> bytes, const ProfileShape& shape = kShape) {
        const ProfileLoad load = parse_profile(bytes, "profile", shape);
        EXPECT_NE(load.profile.has_value(), !load.ignored.empty());
        EXPECT_EQ(load.ignored.find('\n'), std::string::npos);
        return load.ignored;
    }

    const fs::path folder_ = fs::temp_directory_path() / ("coterie_profile_test-" + std::to_string(getpid()));
    const std::string path_ = (folder_ / "profile").string();
};

TEST_F(ProfileTest, CountsAndForgets) {
    RoutingProfile profile(kShape);
    profile.used({1, 2}, 0);
    profile.used({1, 3}, 32768);
    EXPECT_THAT(profile.uses(1), ::testing::ElementsAre(0, 0, ::testing::FloatNear(0.5f, 1e-6f), 1, 0));
    profile.used({2, 0}, 65536);
    EXPECT_THAT(profile.uses(1), ::testing::ElementsAre(0, 0, ::testing::FloatNear(0.25f, 1e-6f),
                                                        ::testing::FloatNear(0.5f, 1e-6f), 0));
}

TEST_F(ProfileTest, ComesBackAsItWasSaved) {
    const RoutingProfile profile = some_profile();
    profile.save(path_);
    const ProfileLoad load = load_profile(path_, kShape);
    ASSERT_TRUE(load.profile) << load.ignored;
    EXPECT_EQ(load.profile->shape(), kShape);
    for (std::int32_t layer = 0; layer < kShape.layers; ++layer) {
        EXPECT_EQ(load.profile->uses(layer), profile.uses(layer));
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "no temporary file is left";
}

TEST_F(ProfileTest, ASavedProfileGoesOnCounting) {
    some_profile().save(path_);
    ProfileLoad load = load_profile(path_, kShape);
    ASSERT_TRUE(load.profile);
    const float before = load.profile->uses(0)[4];
    load.profile->used({0, 4}, 0);
    EXPECT_FLOAT_EQ(load.profile->uses(0)[4], before + 1.0f);
}

TEST_F(ProfileTest, SaysNothingOfAFileThatIsNotThere) {
    const ProfileLoad load = load_profile(path_, kShape);
    EXPECT_FALSE(load.profile);
    EXPECT_EQ(load.ignored, "");
}

TEST_F(ProfileTest, IgnoresWhatDoesNotFitWithOneLine) {
    const std::vector<std::byte> bytes = saved();
    EXPECT_EQ(reason(bytes), "");
    EXPECT_THAT(reason(bytes, {.model_hash = 1, .layers = 3, .experts = 5}), HasSubstr("another model"));
    EXPECT_THAT(reason(bytes, {kShape.model_hash, 3, 6}), HasSubstr("3 layers of 5 experts"));
    EXPECT_THAT(load_profile(path_, {kShape.model_hash, 30, 5}).ignored, HasSubstr(path_));
    EXPECT_THAT(load_profile(path_, {kShape.model_hash, 1, 1}).ignored, HasSubstr(path_));
    EXPECT_THAT(load_profile(folder_.string(), kShape).ignored, HasSubstr("not a regular file"));
}

TEST_F(ProfileTest, IgnoresEveryCutAndEveryFlippedBit) {
    const std::vector<std::byte> bytes = saved();
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        EXPECT_NE(reason(std::span(bytes).first(length)), "") << "cut to " << length;
    }
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        std::vector<std::byte> damaged = bytes;
        damaged[bit / 8] ^= std::byte{1} << (bit % 8);
        EXPECT_NE(reason(damaged), "") << "bit " << bit;
    }
    std::vector<std::byte> longer = bytes;
    longer.push_back({});
    EXPECT_NE(reason(longer), "");
}

TEST_F(ProfileTest, AFolderThatTakesNoFileIsAnIoError) {
    try {
        some_profile().save((folder_ / "nowhere" / "profile").string());
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::Io);
    }
}

TEST_F(ProfileTest, IsSavedEveryTenMinutesWhileItChanges) {
    using std::chrono::minutes;
    RoutingProfile profile(kShape);
    const RoutingProfile::Clock::time_point start{};
    EXPECT_FALSE(profile.should_save(start));
    profile.used({0, 0}, 0);
    EXPECT_FALSE(profile.should_save(start + minutes(9)));
    EXPECT_TRUE(profile.should_save(start + minutes(10)));
    EXPECT_FALSE(profile.should_save(start + minutes(30))) << "nothing was counted since";
    profile.used({0, 0}, 1);
    EXPECT_TRUE(profile.should_save(start + minutes(31)));
    profile.used({0, 0}, 2);
    EXPECT_FALSE(profile.should_save(start + minutes(40)));
}

TEST_F(ProfileTest, TakesTheRankingOfAModelsOwnCounts) {
    const ProfileShape shape{.model_hash = 1, .layers = 3, .experts = 2};
    const std::vector<std::uint32_t> usage{4'000'000'000, 1'000'000'000, 0, 0, 1, 3};
    const ProfileLoad load = profile_from_usage(usage, shape);
    ASSERT_TRUE(load.profile) << load.ignored;
    EXPECT_THAT(load.profile->uses(0), ::testing::ElementsAre(1000, 250));
    EXPECT_THAT(load.profile->uses(1), ::testing::ElementsAre(0, 0));
    EXPECT_FLOAT_EQ(load.profile->uses(2)[1], 1000);

    EXPECT_THAT(profile_from_usage(std::span(usage).first(5), shape).ignored, HasSubstr("5 numbers"));
    EXPECT_THAT(profile_from_usage(std::vector<std::uint32_t>(6), shape).ignored, HasSubstr("no use"));
}

}  // namespace
}  // namespace coterie::expert_cache
