#include "sampling/grammar/utf8_ranges.h"

#include <algorithm>
#include <string>

#include "tokenizer/utf8.h"

namespace coterie::grammar {
namespace {

constexpr char32_t kLastOfLength[] = {0x7F, 0x7FF, 0xFFFF, kLastCodePoint};

std::string encoded(char32_t code) {
    std::string text;
    append_utf8(text, code);
    return text;
}

/// Splits until first and last differ in the last bytes only by full ranges of 6 bits.
void split(CodeRange range, std::vector<ByteSequence>& sequences) {
    for (const char32_t last : kLastOfLength) {
        if (range.first <= last && last < range.last) {
            split({range.first, last}, sequences);
            return split({last + 1, range.last}, sequences);
        }
    }
    for (int bits = 6; bits <= 18 && range.last > 0x7F; bits += 6) {
        const char32_t low = (char32_t{1} << bits) - 1;
        if ((range.first | low) == (range.last | low)) break;
        if ((range.first & low) != 0) {
            split({range.first, range.first | low}, sequences);
            return split({(range.first | low) + 1, range.last}, sequences);
        }
        if ((range.last & low) != low) {
            split({range.first, (range.last & ~low) - 1}, sequences);
            return split({range.last & ~low, range.last}, sequences);
        }
    }
    const std::string first = encoded(range.first);
    const std::string last = encoded(range.last);
    ByteSequence& sequence = sequences.emplace_back();
    for (std::size_t i = 0; i < first.size(); ++i) {
        sequence.push_back({static_cast<std::uint8_t>(first[i]), static_cast<std::uint8_t>(last[i])});
    }
}

}  // namespace

std::vector<ByteSequence> utf8_sequences(CodeRange range) {
    std::vector<ByteSequence> sequences;
    if (range.first <= range.last) split(range, sequences);
    return sequences;
}

}  // namespace coterie::grammar
