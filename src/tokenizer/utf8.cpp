#include "tokenizer/utf8.h"

namespace coterie {
namespace {

/// A lead byte's length in bytes and the range of the byte after it (Unicode, table 3-7): the narrow ranges
/// shut out overlong forms, surrogates and everything above U+10FFFF.
struct Lead {
    std::size_t bytes;  ///< 0: no lead byte
    unsigned char second_min = 0x80;
    unsigned char second_max = 0xBF;
};

Lead lead_of(unsigned char byte) {
    if (byte < 0x80) return {1};
    if (byte < 0xC2) return {0};
    if (byte < 0xE0) return {2};
    if (byte == 0xE0) return {3, 0xA0, 0xBF};
    if (byte == 0xED) return {3, 0x80, 0x9F};
    if (byte < 0xF0) return {3};
    if (byte == 0xF0) return {4, 0x90, 0xBF};
    if (byte < 0xF4) return {4};
    if (byte == 0xF4) return {4, 0x80, 0x8F};
    return {0};
}

}  // namespace

Utf8Step utf8_step(std::string_view text, std::size_t position) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[position + i]); };
    const std::size_t available = text.size() - position;
    const Lead lead = lead_of(byte(0));
    if (lead.bytes == 0) return {Utf8Step::Kind::Invalid, 1};
    for (std::size_t i = 1; i < lead.bytes; ++i) {
        if (i == available) return {Utf8Step::Kind::Cut, i};
        const unsigned char low = i == 1 ? lead.second_min : 0x80;
        const unsigned char high = i == 1 ? lead.second_max : 0xBF;
        if (byte(i) < low || byte(i) > high) return {Utf8Step::Kind::Invalid, i};
    }
    return {Utf8Step::Kind::Character, lead.bytes};
}

char32_t utf8_code_point(std::string_view character) {
    const auto byte = [&](std::size_t i) {
        return static_cast<char32_t>(static_cast<unsigned char>(character[i]));
    };
    switch (character.size()) {
        case 1:
            return byte(0);
        case 2:
            return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
        case 3:
            return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
        default:
            return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    }
}

void append_utf8(std::string& text, char32_t code_point) {
    const auto push = [&](char32_t bits) { text.push_back(static_cast<char>(bits)); };
    const auto continuation = [&](int shift) { push(0x80 | ((code_point >> shift) & 0x3F)); };
    if (code_point < 0x80) {
        push(code_point);
    } else if (code_point < 0x800) {
        push(0xC0 | code_point >> 6);
        continuation(0);
    } else if (code_point < 0x10000) {
        push(0xE0 | code_point >> 12);
        continuation(6);
        continuation(0);
    } else {
        push(0xF0 | code_point >> 18);
        continuation(12);
        continuation(6);
        continuation(0);
    }
}

}  // namespace coterie
