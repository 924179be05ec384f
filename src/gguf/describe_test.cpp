#include "gguf/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "gguf/expert_summary.h"
#include "gguf/printable.h"
#include "gguf/test_files.h"

namespace coterie::gguf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(DescribeTest, TextShowsMetadataExpertsAndTensors) {
    const auto bytes = testing::with_pattern(testing::header_of_everything());
    const std::string text = describe_text(Archive::from_bytes(bytes, "demo"), {.array_values = 2});
    EXPECT_THAT(text, HasSubstr("demo\nGGUF version 3"));
    EXPECT_THAT(text, ::testing::ContainsRegex("general.architecture +string +test\n"));
    EXPECT_THAT(text, ::testing::ContainsRegex("floats +f32\\[3\\] +1.5, -2.5, \\.\\.\\.\n"));
    EXPECT_THAT(text, ::testing::ContainsRegex("f32 +f32 +0.1\n"));
    EXPECT_THAT(text, ::testing::ContainsRegex("true +bool +true\n"));
    EXPECT_THAT(text, ::testing::ContainsRegex("words +string\\[4\\] +\"one\", \"\", \\.\\.\\.\n"));
    EXPECT_THAT(text,
                ::testing::ContainsRegex("layer 0 +3 experts of +212 B  ffn_down Q4_K  ffn_gate Q8_0\n"));
    EXPECT_THAT(text, ::testing::ContainsRegex("blk.0.ffn_gate_exps.weight +Q8_0 +32 x 2 x 3 +204 B"));
}

TEST(DescribeTest, TextWithoutTensors) {
    const auto bytes = testing::with_pattern(testing::header_of_everything());
    const std::string text = describe_text(Archive::from_bytes(bytes, "demo"), {.tensors = false});
    EXPECT_THAT(text, Not(HasSubstr("output_norm.weight")));
    EXPECT_THAT(text, HasSubstr("\"f\\xff\""));
}

TEST(DescribeTest, JsonHoldsTheSame) {
    const auto bytes = testing::with_pattern(testing::header_of_everything());
    const auto json =
        nlohmann::json::parse(describe_json(Archive::from_bytes(bytes, "demo"), {.array_values = 3}));
    EXPECT_EQ(json["name"], "demo");
    EXPECT_EQ(json["bytes"], bytes.size());
    EXPECT_EQ(json["metadata"]["u64"], 9000000000000000000U);
    EXPECT_EQ(json["metadata"]["true"], true);
    EXPECT_EQ(json["metadata"]["f64"], 0.1);
    EXPECT_EQ(json["metadata"]["shorts"], nlohmann::json({1, 2, 65535}));
    EXPECT_EQ(json["metadata"]["none"], nlohmann::json::array());
    EXPECT_EQ(json["metadata"]["words"]["count"], 4);
    EXPECT_EQ(json["metadata"]["words"]["first"], nlohmann::json({"one", "", "\u0120three"}));
    EXPECT_EQ(json["experts"][0]["bytes_per_expert"], 212);
    EXPECT_EQ(json["experts"][0]["types"]["ffn_down"], "Q4_K");
    EXPECT_EQ(json["tensors"][2]["dims"], nlohmann::json({32, 2, 3}));
    EXPECT_EQ(json["tensors"][4]["type"], "I16");
}

TEST(DescribeTest, JsonIsValidWhateverTheFileHolds) {
    Header header;
    header.set("bad\xFFkey", "bad\xC3text\n\"");
    header.set("nan", std::numeric_limits<float>::quiet_NaN());
    const auto bytes = testing::with_pattern(header);
    const auto json = nlohmann::json::parse(describe_json(Archive::from_bytes(bytes, "demo"), {}));
    EXPECT_TRUE(json["metadata"]["nan"].is_null());
    EXPECT_EQ(json["metadata"]["bad\uFFFDkey"], "bad\uFFFDtext\n\"");
}

TEST(ExpertSummaryTest, CountsBiasesAndMixedTypes) {
    Header header;
    header.add_tensor({"blk.1.ffn_up_exps.weight", DataType::Q8_0, {32, 2, 4}});
    header.add_tensor({"blk.1.ffn_up_exps.bias", DataType::F32, {2, 4}});
    header.add_tensor({"blk.7.ffn_down.0.weight", DataType::Q8_0, {32, 2}});
    header.add_tensor({"blk.7.ffn_down.1.weight", DataType::F16, {32, 2}});
    header.add_tensor({"blk.7.ffn_down.weight", DataType::F16, {32, 2}});
    header.add_tensor({"blk.x.ffn_up_exps.weight", DataType::F16, {32, 2, 4}});
    const auto bytes = testing::with_pattern(header);
    const auto layers = summarise_experts(Archive::from_bytes(bytes, "demo"));
    ASSERT_EQ(layers.size(), 2U);
    EXPECT_EQ(layers.at(1).experts, 4);
    EXPECT_EQ(layers.at(1).bytes_per_expert, 2U * 34 + 2 * 4);
    EXPECT_EQ(layers.at(7).experts, 2);
    EXPECT_EQ(layers.at(7).bytes_per_expert, (2U * 34 + 2 * 64) / 2);
    EXPECT_EQ(layers.at(7).types.at("ffn_down"), "Q8_0, F16");
}

TEST(PrintableTest, EscapesWhatIsNotText) {
    EXPECT_EQ(printable("plain \u00e4 \u0120 \u20ac \U0001F30B"), "plain \u00e4 \u0120 \u20ac \U0001F30B");
    EXPECT_EQ(printable(std::string_view("a\0b\n\t\x7F", 6)), "a\\x00b\\n\\t\\x7f");
    EXPECT_EQ(printable("\xC0\x80"), "\\xc0\\x80");                    // overlong
    EXPECT_EQ(printable("\xE0\x80\x80"), "\\xe0\\x80\\x80");           // overlong
    EXPECT_EQ(printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");           // a surrogate
    EXPECT_EQ(printable("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // past U+10FFFF
    EXPECT_EQ(printable("\xC2\x9B"), "\\xc2\\x9b");                    // a control character
    EXPECT_EQ(printable("\xE2\x82"), "\\xe2\\x82");                    // cut
    EXPECT_EQ(printable("abcdef", 3), "abc...");
}

}  // namespace
}  // namespace coterie::gguf
