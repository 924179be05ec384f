#include "tokenizer/models/byte_alphabet.h"

#include <gtest/gtest.h>
#include <set>

namespace coterie {
namespace {

TEST(ByteAlphabet, FollowsTheRules) {
    EXPECT_EQ(bytes_to_alphabet(" a\n"), "\u0120a\u010A");
    EXPECT_EQ(bytes_to_alphabet("\xFF\x7F\xAD"), "\u00FF\u0121\u0143");  // the last of the 68 is byte 173
    EXPECT_EQ(bytes_to_alphabet(std::string(1, '\0')), "\u0100");
}

TEST(ByteAlphabet, EveryByteHasItsOwnLetterAndReadsBack) {
    std::set<std::string> letters;
    for (int value = 0; value < 256; ++value) {
        const std::string byte(1, static_cast<char>(value));
        const std::string letter = bytes_to_alphabet(byte);
        EXPECT_TRUE(letters.insert(letter).second) << value;
        EXPECT_EQ(bytes_from_alphabet(letter), byte);
    }
}

TEST(ByteAlphabet, OtherCharactersAreNoBytes) {
    EXPECT_EQ(bytes_from_alphabet("a b"), std::nullopt);
    EXPECT_EQ(bytes_from_alphabet("\u0144"), std::nullopt);
    EXPECT_EQ(bytes_from_alphabet("\u6F22"), std::nullopt);
    EXPECT_EQ(bytes_from_alphabet("\xFF"), std::nullopt);
    EXPECT_EQ(bytes_from_alphabet(""), "");
}

}  // namespace
}  // namespace coterie
