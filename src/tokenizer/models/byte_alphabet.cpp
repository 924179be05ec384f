#include "tokenizer/models/byte_alphabet.h"

#include <array>

#include "tokenizer/utf8.h"

namespace coterie {
namespace {

constexpr int kLetters = 256 + 68;

constexpr bool stands_for_itself(int byte) {
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
}

constexpr std::array<char32_t, 256> make_code_points() {
    std::array<char32_t, 256> code_points{};
    char32_t next = 256;
    for (int byte = 0; byte < 256; ++byte) {
        code_points[static_cast<std::size_t>(byte)] =
            stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
    }
    return code_points;
}

constexpr std::array<char32_t, 256> kCodePoints = make_code_points();

constexpr std::array<int, kLetters> make_bytes() {
    std::array<int, kLetters> bytes{};
    for (int& byte : bytes) byte = -1;
    for (int byte = 0; byte < 256; ++byte) bytes[kCodePoints[static_cast<std::size_t>(byte)]] = byte;
    return bytes;
}

constexpr std::array<int, kLetters> kBytes = make_bytes();

}  // namespace

std::optional<std::string> bytes_from_alphabet(std::string_view text) {
    std::string bytes;
    for (std::size_t position = 0; position < text.size();) {
        const Utf8Step step = utf8_step(text, position);
        if (step.kind != Utf8Step::Kind::Character) return std::nullopt;
        const char32_t code_point = utf8_code_point(text.substr(position, step.bytes));
        if (code_point >= kLetters || kBytes[code_point] < 0) return std::nullopt;
        bytes.push_back(static_cast<char>(kBytes[code_point]));
        position += step.bytes;
    }
    return bytes;
}

std::string bytes_to_alphabet(std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) append_utf8(text, kCodePoints[static_cast<unsigned char>(byte)]);
    return text;
}

}  // namespace coterie
