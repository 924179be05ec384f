#include "gguf/printable.h"

#include <cstdint>
#include <fmt/format.h>
#include <iterator>

namespace coterie::gguf {
namespace {

std::uint8_t byte_at(std::string_view text, std::size_t i) { return static_cast<std::uint8_t>(text[i]); }

bool is_continuation(std::string_view text, std::size_t i) {
    return i < text.size() && (byte_at(text, i) & 0xC0) == 0x80;
}

/// Length of the well-formed, printable UTF-8 character at `i`; 0 where there is none.
std::size_t character_length(std::string_view text, std::size_t i) {
    const std::uint8_t lead = byte_at(text, i);
    if (lead < 0x80) return lead >= 0x20 && lead != 0x7F ? 1 : 0;
    if (lead < 0xC2 || !is_continuation(text, i + 1)) return 0;
    const std::uint8_t second = byte_at(text, i + 1);
    if (lead < 0xE0) return lead == 0xC2 && second < 0xA0 ? 0 : 2;  // U+0080..U+009F are control characters
    if (lead == 0xE0 && second < 0xA0) return 0;                    // overlong
    if (lead == 0xED && second >= 0xA0) return 0;                   // surrogates
    if (!is_continuation(text, i + 2)) return 0;
    if (lead < 0xF0) return 3;
    if (lead > 0xF4 || (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second >= 0x90)) return 0;
    return is_continuation(text, i + 3) ? 4 : 0;
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
    std::string result;
    for (std::size_t i = 0; i < text.size();) {
        if (i >= limit) return result + "...";
        const std::size_t length = character_length(text, i);
        if (length > 0) {
            result += text.substr(i, length);
        } else if (text[i] == '\n') {
            result += "\\n";
        } else if (text[i] == '\t') {
            result += "\\t";
        } else {
            fmt::format_to(std::back_inserter(result), "\\x{:02x}", byte_at(text, i));
        }
        i += length > 0 ? length : 1;
    }
    return result;
}

}  // namespace coterie::gguf
