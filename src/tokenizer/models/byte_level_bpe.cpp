#include "tokenizer/models/byte_level_bpe.h"

#include "base/error.h"
#include "tokenizer/models/byte_alphabet.h"

namespace coterie {
namespace {

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
}

}  // namespace

std::size_t ByteLevelBpe::PairHash::operator()(std::uint64_t pair) const {
    pair *= 0x9E3779B97F4A7C15;  // 2^64 / golden ratio: spreads neighbouring numbers
    return pair ^ pair >> 32;
}

ByteLevelBpe::ByteLevelBpe(const Vocabulary& vocabulary, const PreTokenizerFamily& family)
    : vocabulary_(vocabulary), pre_tokenizer_(family), ignores_merges_(family.ignores_merges) {
    if (vocabulary.data().merges.empty()) {
        fail(ErrorCode::InvalidFile,
             "tokenizer.ggml.merges is missing or empty, and a vocabulary with tokenizer.ggml.model 'gpt2' "
             "needs it; "
             "convert the model again");
    }
    symbols_.reserve(vocabulary.size() + 256);
    merges_.reserve(vocabulary.data().merges.size());
    add_bytes();
    add_tokens();
    add_merges();
}

void ByteLevelBpe::add_bytes() {
    for (int byte = 0; byte < 256; ++byte) symbol_for(std::string(1, static_cast<char>(byte)));
}

void ByteLevelBpe::add_tokens() {
    const auto count = static_cast<TokenId>(vocabulary_.size());
    for (TokenId id = 0; id < count; ++id) {
        if (vocabulary_.type(id) != TokenType::Normal) continue;
        const auto bytes = bytes_from_alphabet(vocabulary_.text(id));
        if (!bytes || bytes->empty()) continue;  // no text can lead to it
        TokenId& token = token_of_symbol_[static_cast<std::size_t>(symbol_for(*bytes))];
        if (token == kNoToken) token = id;
    }
}

void ByteLevelBpe::add_merges() {
    const std::vector<std::string>& merges = vocabulary_.data().merges;
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
        const std::string_view merge = merges[rank];
        const std::size_t space = merge.find(' ', 1);
        if (space == std::string_view::npos || space + 1 == merge.size()) {
            fail(ErrorCode::InvalidFile,
                 "tokenizer.ggml.merges: entry {} is not two texts with a space between", rank);
        }
        add_merge(merge.substr(0, space), merge.substr(space + 1), static_cast<std::int32_t>(rank));
    }
}

void ByteLevelBpe::add_merge(std::string_view left, std::string_view right, std::int32_t rank) {
    const auto left_bytes = bytes_from_alphabet(left);
    const auto right_bytes = bytes_from_alphabet(right);
    if (!left_bytes || !right_bytes) return;  // texts that no sequence of bytes leads to
    const auto whole = vocabulary_.find(std::string(left) + std::string(right));
    if (whole && vocabulary_.type(*whole) != TokenType::Normal) return;
    const std::uint64_t key = pair_key(symbol_for(*left_bytes), symbol_for(*right_bytes));
    merges_.try_emplace(key, Merge{rank, symbol_for(*left_bytes + *right_bytes)});
}

ByteLevelBpe::Symbol ByteLevelBpe::symbol_for(const std::string& bytes) {
    const auto [entry, is_new] = symbols_.try_emplace(bytes, static_cast<Symbol>(token_of_symbol_.size()));
    if (is_new) token_of_symbol_.push_back(kNoToken);
    return entry->second;
}

void ByteLevelBpe::encode(std::string_view text, std::vector<TokenId>& ids) const {
    PairMerger merger;
    pre_tokenizer_.split(text, [&](std::string_view fragment) { encode_fragment(fragment, merger, ids); });
}

void ByteLevelBpe::encode_fragment(std::string_view fragment, PairMerger& merger,
                                   std::vector<TokenId>& ids) const {
    if (ignores_merges_) {
        const auto whole = symbols_.find(fragment);
        if (whole != symbols_.end() &&
            token_of_symbol_[static_cast<std::size_t>(whole->second)] != kNoToken) {
            ids.push_back(token_of_symbol_[static_cast<std::size_t>(whole->second)]);
            return;
        }
    }
    merger.clear();
    for (std::size_t i = 0; i < fragment.size(); ++i) {
        merger.add({static_cast<std::uint32_t>(i), 1, static_cast<unsigned char>(fragment[i])});
    }
    merger.merge([&](const MergeSymbol& left, const MergeSymbol& right) {
        return find_merge(left.value, right.value);
    });
    merger.for_each([&](const MergeSymbol& symbol) {
        emit(symbol.value, fragment.substr(symbol.begin, symbol.bytes), ids);
    });
}

void ByteLevelBpe::emit(Symbol symbol, std::string_view bytes, std::vector<TokenId>& ids) const {
    const TokenId token = token_of_symbol_[static_cast<std::size_t>(symbol)];
    if (token != kNoToken) {
        ids.push_back(token);
    } else if (bytes.size() > 1) {
        for (const char& byte : bytes) emit(static_cast<unsigned char>(byte), {&byte, 1}, ids);
    } else if (vocabulary_.special().unknown) {
        ids.push_back(*vocabulary_.special().unknown);
    } else {
        fail(ErrorCode::InvalidArgument,
             "the text holds byte 0x{:02X}, which this model's vocabulary cannot express",
             static_cast<unsigned char>(bytes[0]));
    }
}

std::optional<Merge> ByteLevelBpe::find_merge(Symbol left, Symbol right) const {
    const auto found = merges_.find(pair_key(left, right));
    if (found == merges_.end()) return std::nullopt;
    return found->second;
}

std::string ByteLevelBpe::bytes_of(TokenId id) const {
    const std::string& text = vocabulary_.text(id);
    if (vocabulary_.type(id) != TokenType::Normal) return text;
    return bytes_from_alphabet(text).value_or(text);
}

}  // namespace coterie
