#include "tokenizer/models/sentence_piece.h"

#include <cmath>
#include <gmock/gmock.h>

#include "base/error.h"
#include "tokenizer/small_vocabularies.h"

namespace coterie {
namespace {

using testing::ElementsAre;

constexpr TokenId byte_token(int byte) { return 3 + byte; }

VocabularyData without_prefix() {
    VocabularyData data = small_vocabularies::sentence_piece();
    data.add_space_prefix = false;
    return data;
}

std::vector<TokenId> encode(VocabularyData data, std::string_view text) {
    const Vocabulary vocabulary(std::move(data));
    std::vector<TokenId> ids;
    SentencePiece(vocabulary).encode(text, ids);
    return ids;
}

// "el" (-1) before "lo" (-2) before "he" (-3); "hel" can only come from "h" "el" or "he" "l".
TEST(SentencePiece, TheBestScoreMergesFirst) {
    EXPECT_THAT(encode(without_prefix(), "hello"), ElementsAre(269, 267));
    EXPECT_THAT(encode(without_prefix(), "he"), ElementsAre(265));
    EXPECT_THAT(encode(without_prefix(), "helo"), ElementsAre(269, 263));
    EXPECT_THAT(encode(without_prefix(), "aaaaa"), ElementsAre(270, 270, 271));
}

TEST(SentencePiece, SpacesArePiecesAndAPrefixStandsInFront) {
    EXPECT_THAT(encode(without_prefix(), "w w"), ElementsAre(264, 268));
    EXPECT_THAT(encode(small_vocabularies::sentence_piece(), "w w"), ElementsAre(268, 268));
    EXPECT_THAT(encode(small_vocabularies::sentence_piece(), " w"), ElementsAre(259, 268));
    EXPECT_THAT(encode(small_vocabularies::sentence_piece(), ""), ElementsAre());
}

TEST(SentencePiece, UnknownCharactersComeOutAsBytes) {
    EXPECT_THAT(encode(without_prefix(), "w\n"), ElementsAre(264, byte_token('\n')));
    EXPECT_THAT(encode(without_prefix(), "\u00FC"), ElementsAre(byte_token(0xC3), byte_token(0xBC)));
    EXPECT_THAT(encode(without_prefix(), "h\xFF\xE2"), ElementsAre(260, byte_token(0xFF), byte_token(0xE2)));
}

TEST(SentencePiece, WithoutByteTokensTheUnknownTokenStandsForACharacter) {
    VocabularyData data = without_prefix();
    data.token_types[byte_token('x')] = static_cast<std::int32_t>(TokenType::Unused);
    EXPECT_THAT(encode(data, "h\u00FCh"), ElementsAre(260, 0, 260));
}

TEST(SentencePiece, TextsOfBytesAndControlTokensAreNoPieces) {
    VocabularyData data = without_prefix();
    small_vocabularies::add(data, "<s", TokenType::Normal, -1);
    small_vocabularies::add(data, "<0", TokenType::Normal, -1);
    for (const char* piece : {"<", "s", ">", "0", "x", "A", "<0x", "<0x0", "<0x0A"}) {
        small_vocabularies::add(data, piece, TokenType::Normal, -2);
    }
    EXPECT_THAT(encode(data, "<s>"), ElementsAre(272, 276));
    EXPECT_THAT(encode(data, "<0x0A>"), ElementsAre(282, 276));
}

TEST(SentencePiece, RefusesScoresThatAreMissingOrNoNumbers) {
    VocabularyData missing = small_vocabularies::sentence_piece();
    missing.scores.clear();
    EXPECT_THROW(encode(missing, "a"), Error);
    VocabularyData not_a_number = small_vocabularies::sentence_piece();
    not_a_number.scores[260] = std::nanf("");
    EXPECT_THROW(encode(not_a_number, "a"), Error);
    VocabularyData bad_byte = small_vocabularies::sentence_piece();
    bad_byte.tokens[5] = "<0x0G>";
    EXPECT_THROW(encode(bad_byte, "a"), Error);
}

TEST(SentencePiece, TokensStandForBytes) {
    const Vocabulary vocabulary(small_vocabularies::sentence_piece());
    const SentencePiece sentence_piece(vocabulary);
    EXPECT_EQ(sentence_piece.bytes_of(268), " w");
    EXPECT_EQ(sentence_piece.bytes_of(byte_token(0xFF)), "\xFF");
    EXPECT_EQ(sentence_piece.bytes_of(byte_token(0)), std::string(1, '\0'));
    EXPECT_EQ(sentence_piece.bytes_of(2), "</s>");
}

}  // namespace
}  // namespace coterie
