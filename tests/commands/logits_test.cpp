#include <cstring>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.h"

namespace coterie::commands_test {
namespace {

constexpr std::size_t kVocabulary = 8192;

std::vector<float> floats(const std::string& bytes) {
    std::vector<float> result(bytes.size() / sizeof(float));
    std::memcpy(result.data(), bytes.data(), result.size() * sizeof(float));
    return result;
}

TEST(LogitsTest, DevicesChangeNoFloat) {
    TemporaryFolder folder;
    const auto logits_with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), {"logits", "-m", kModel, "--tokens", "8190,283,198,2370,5,6,7,8", "--raw",
                                   folder.file("logits.f32")});
        output_of(std::move(more));
        return read_file(folder.file("logits.f32"));
    };
    const std::string alone = logits_with({});
    ASSERT_EQ(alone.size(), 8 * kVocabulary * sizeof(float));
    EXPECT_TRUE(logits_with({"--fake-gpu", "8M@1G/s,6M@10G/s", "--expert-cache", "30"}) == alone);
    EXPECT_TRUE(logits_with({"--fake-gpu", "64M@1G/s", "--window", "64", "-b", "3"}) == alone);
}

TEST(LogitsTest, RawAndJsonHoldTheSameFloatsWhateverTheBatch) {
    TemporaryFolder folder;
    const std::string raw = folder.file("logits.f32");
    EXPECT_EQ(
        output_of({"logits", "-m", kModel, "--tokens", "8190,283,198,2370", "--batch", "1", "--raw", raw}),
        "");
    const std::vector<float> rows = floats(read_file(raw));
    ASSERT_EQ(rows.size(), 4 * kVocabulary);

    const auto json =
        nlohmann::json::parse(output_of({"logits", "-m", kModel, "--tokens", "8190,283,198,2370"}));
    EXPECT_EQ(json.at("vocabulary"), kVocabulary);
    EXPECT_EQ(json.at("tokens"), (std::vector<int>{8190, 283, 198, 2370}));
    std::vector<float> from_json;
    for (const auto& row : json.at("logits")) {
        const auto values = row.get<std::vector<float>>();
        from_json.insert(from_json.end(), values.begin(), values.end());
    }
    EXPECT_TRUE(from_json == rows);

    // Standard output can be the file.
    EXPECT_TRUE(floats(output_of({"logits", "-m", kModel, "--tokens", "8190,283,198,2370", "--raw", "-"})) ==
                rows);
}

TEST(LogitsTest, RefusesTokensOutsideTheVocabularyAndLeavesNoFile) {
    TemporaryFolder folder;
    for (const std::string token : {"8192", "-1"}) {
        expect_error({"logits", "-m", kModel, "--tokens", "1," + token, "--raw", folder.file("out")}, 2,
                     {token, "vocabulary of 8192"});
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder.file("")));
}

TEST(LogitsTest, RefusesMoreTokensThanTheContextHolds) {
    expect_error({"logits", "-m", kModel, "--tokens", "1,2,3", "-c", "2", "--raw", "-"}, 2, {"context of 2"});
}

}  // namespace
}  // namespace coterie::commands_test
