#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace coterie {

/// `gpt2` vocabularies write every byte as one printable character: 33 to 126, 161 to 172 and 174 to 255 as
/// the code point of that value, the other 68 bytes, in order, as U+0100 and up (a space is U+0120).

/// The bytes that a token's text stands for, or nothing where it has a character outside the alphabet.
std::optional<std::string> bytes_from_alphabet(std::string_view text);

/// The inverse.
std::string bytes_to_alphabet(std::string_view bytes);

}  // namespace coterie
