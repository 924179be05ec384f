#include "tokenizer/utf8.h"

#include <gtest/gtest.h>

namespace coterie {
namespace {

using Kind = Utf8Step::Kind;

void expect_step(std::string_view text, Kind kind, std::size_t bytes) {
    const Utf8Step step = utf8_step(text, 0);
    EXPECT_EQ(static_cast<int>(step.kind), static_cast<int>(kind));
    EXPECT_EQ(step.bytes, bytes);
}

TEST(Utf8, EveryCodePointReadsBackAsItWasWritten) {
    for (char32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
        std::string text;
        append_utf8(text, code_point);
        const Utf8Step step = utf8_step(text, 0);
        const bool is_surrogate = code_point >= 0xD800 && code_point < 0xE000;
        ASSERT_EQ(step.kind == Kind::Character && step.bytes == text.size(), !is_surrogate)
            << std::uint32_t{code_point};
        ASSERT_EQ(utf8_code_point(text), code_point);
    }
}

TEST(Utf8, EveryCutIsRecognised) {
    for (const std::string_view character : {"\xC3\xBC", "\xE2\x96\x81", "\xF0\x9F\xA6\x99"}) {
        for (std::size_t bytes = 1; bytes < character.size(); ++bytes) {
            expect_step(character.substr(0, bytes), Kind::Cut, bytes);
        }
    }
}

TEST(Utf8, WhatNoContinuationMendsIsInvalid) {
    expect_step("\x80", Kind::Invalid, 1);              // continuation alone
    expect_step("\xC0\x80", Kind::Invalid, 1);          // overlong
    expect_step("\xE0\x80\x80", Kind::Invalid, 1);      // overlong
    expect_step("\xED\xA0\x80", Kind::Invalid, 1);      // surrogate
    expect_step("\xF4\x90\x80\x80", Kind::Invalid, 1);  // above U+10FFFF
    expect_step("\xFF", Kind::Invalid, 1);
    expect_step("\xE2\x96x", Kind::Invalid, 2);  // a good start, then something else
    expect_step("\xF0\x9F\xA6\xF0", Kind::Invalid, 3);
}

}  // namespace
}  // namespace coterie
