#include "cli/text_input.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "base/error.h"

namespace coterie::cli {
namespace {

TEST(TextInputTest, TurnsEscapesIntoCharacters) {
    EXPECT_EQ(process_escapes(R"(a\nb\tc\rd)"), "a\nb\tc\rd");
    EXPECT_EQ(process_escapes(R"(\\n \' \")"), R"(\n ' ")");
    EXPECT_EQ(process_escapes(R"(\x41\xe2\x82\xAC)"), "A\xe2\x82\xac");
}

TEST(TextInputTest, KeepsWhatIsNoEscape) {
    for (const char* text : {R"(\)", R"(\q)", R"(\x4)", R"(\xg1)", R"(end\)", "", "plain"}) {
        EXPECT_EQ(process_escapes(text), text);
    }
}

TEST(TextInputTest, ReadsFilesByteByByte) {
    const auto path = std::filesystem::temp_directory_path() / "coterie_text_input_test";
    const std::string bytes("a\0b\r\n\xff", 6);
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_EQ(read_whole_file(path.string()), bytes);
    std::filesystem::remove(path);
}

TEST(TextInputTest, TextsAreUtf8) {
    const auto path = std::filesystem::temp_directory_path() / "coterie_text_input_test";
    const auto refusal = [&](const std::string& bytes) -> std::string {
        std::ofstream(path, std::ios::binary) << bytes;
        try {
            EXPECT_EQ(read_text_file(path.string()), bytes);
            return "";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::InvalidFile);
            return error.what();
        }
    };
    for (const char* text : {"", "plain\r\n\t", "\xEF\xBB\xBF\xC3\xA4\xF0\x9F\x98\x80"})
        EXPECT_EQ(refusal(text), "");
    const std::string name = path.string();
    EXPECT_TRUE(refusal("ab\xC3").starts_with(name + ": byte 2 is 0xc3, ")) << "cut";
    EXPECT_TRUE(refusal("\xC3\xA4\xFFz").starts_with(name + ": byte 2 is 0xff, "));
    EXPECT_TRUE(refusal("\xED\xA0\x80").starts_with(name + ": byte 0 is 0xed, ")) << "half of a pair";
    EXPECT_TRUE(refusal(std::string("a\0b\xFF", 4)).starts_with(name + ": byte 1 is 0x00, "));
    std::filesystem::remove(path);
}

TEST(TextInputTest, NamesAPathThatCannotBeRead) {
    const auto code_for = [](const std::string& path) {
        try {
            read_text_file(path);
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
            return error.code();
        }
        return ErrorCode::Internal;
    };
    EXPECT_EQ(code_for("/nowhere/text"), ErrorCode::NotFound);
    EXPECT_EQ(code_for(std::filesystem::temp_directory_path().string()), ErrorCode::InvalidArgument);
}

}  // namespace
}  // namespace coterie::cli
