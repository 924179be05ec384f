#pragma once

#include <cstdint>

/// What texts consist of, as far as a grammar's loops care: a set of 64 kinds, small enough to keep for every
/// place of a token trie.
namespace coterie::grammar {

/// One bit each: digits, capitals, small letters, every other ASCII character that JSON or code give a
/// meaning (some share one), and two for what lies beyond ASCII.
using ByteKinds = std::uint64_t;

inline constexpr ByteKinds kCharacters = ByteKinds{1}
                                         << 62;  ///< characters beyond ASCII, the last perhaps not whole
inline constexpr ByteKinds kBroken = ByteKinds{1} << 63;  ///< bytes beyond ASCII where no UTF-8 has them
inline constexpr ByteKinds kMark = ByteKinds{1} << 61;    ///< of tokens without text (automaton.h)

/// The kind of a byte by itself.
constexpr ByteKinds kind_of(std::uint8_t byte) {
    if (byte == 0xFF) return kMark;
    if (byte >= 0x80) return kBroken;
    if (byte >= '0' && byte <= '9') return ByteKinds{1} << 0;
    if (byte >= 'A' && byte <= 'Z') return ByteKinds{1} << 1;
    if (byte >= 'a' && byte <= 'z') return ByteKinds{1} << 2;
    if (byte == '\n') return ByteKinds{1} << 3;
    if (byte == '\r') return ByteKinds{1} << 4;
    if (byte == '\t') return ByteKinds{1} << 5;
    if (byte < ' ') return ByteKinds{1} << 6;
    if (byte < '0') return ByteKinds{1} << (7 + byte - ' ');   // 7 to 22
    if (byte < 'A') return ByteKinds{1} << (23 + byte - ':');  // 23 to 29
    if (byte < 'a') return ByteKinds{1} << (30 + byte - '[');  // 30 to 35
    return ByteKinds{1} << (36 + byte - '{');                  // 36 to 40, DEL the last
}

/// Where the bytes so far leave a reader of UTF-8 (Unicode 15, table 3-7).
enum class Utf8Place : std::uint8_t {
    Between,  ///< two characters
    One,      ///< one more byte 80 to BF comes
    Two,
    Three,
    AfterE0,
    AfterED,
    AfterF0,
    AfterF4,
    Nowhere,  ///< that was no UTF-8
};

constexpr Utf8Place read_utf8(Utf8Place place, std::uint8_t byte) {
    using enum Utf8Place;
    const auto within = [byte](int first, int last, Utf8Place next) {
        return byte >= first && byte <= last ? next : Nowhere;
    };
    switch (place) {
        case Between:
            if (byte < 0x80) return Between;
            if (byte == 0xE0) return AfterE0;
            if (byte == 0xED) return AfterED;
            if (byte == 0xF0) return AfterF0;
            if (byte == 0xF4) return AfterF4;
            if (byte >= 0xF1 && byte <= 0xF3) return Three;
            if (byte >= 0xE1 && byte <= 0xEF) return Two;
            return within(0xC2, 0xDF, One);
        case One:
            return within(0x80, 0xBF, Between);
        case Two:
            return within(0x80, 0xBF, One);
        case Three:
            return within(0x80, 0xBF, Two);
        case AfterE0:
            return within(0xA0, 0xBF, One);
        case AfterED:
            return within(0x80, 0x9F, One);
        case AfterF0:
            return within(0x90, 0xBF, Two);
        case AfterF4:
            return within(0x80, 0x8F, Two);
        case Nowhere:
            break;
    }
    return Nowhere;
}

}  // namespace coterie::grammar
