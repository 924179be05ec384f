#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace coterie {

/// What stands at one place of a text that should be UTF-8 and may be anything.
struct Utf8Step {
    enum class Kind {
        Character,  ///< one well-formed character
        Invalid,    ///< bytes that no continuation can make a character
        Cut,        ///< the well-formed start of a character that the text's end cuts off
    };
    Kind kind;
    std::size_t
        bytes;  ///< of the character, or of the longest well-formed start (Unicode's "maximal subpart"), >= 1
};

/// Requires: position < text.size().
Utf8Step utf8_step(std::string_view text, std::size_t position);

/// The code point of a well-formed character of 1 to 4 bytes.
char32_t utf8_code_point(std::string_view character);

void append_utf8(std::string& text, char32_t code_point);

/// What stands for bytes that are no character, as in every decoder of the web.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace coterie
