#include "tokenizer/vocabulary/load_vocabulary.h"

#include <initializer_list>
#include <limits>
#include <string>

#include "base/error.h"

namespace coterie {
namespace {

std::string full_key(std::string_view key) { return "tokenizer.ggml." + std::string(key); }

std::vector<std::string> read_strings(const gguf::Metadata& metadata, const std::string& key) {
    std::vector<std::string> result;
    if (!metadata.has(key)) return result;
    const gguf::StringArray strings = metadata.strings(key);
    result.reserve(strings.size());
    for (const std::string_view text : strings) result.emplace_back(text);
    return result;
}

std::vector<std::int32_t> read_types(const gguf::Metadata& metadata, const std::string& key) {
    std::vector<std::int32_t> result;
    if (!metadata.has(key)) return result;
    for (const std::int64_t type : metadata.integers(key)) {
        if (type < 0 || type > std::numeric_limits<std::int32_t>::max()) {
            fail(ErrorCode::InvalidFile, "{}: {}: {} is no token type", metadata.file(), key, type);
        }
        result.push_back(static_cast<std::int32_t>(type));
    }
    return result;
}

std::vector<float> read_scores(const gguf::Metadata& metadata, const std::string& key) {
    std::vector<float> result;
    if (!metadata.has(key)) return result;
    for (const double score : metadata.numbers(key)) result.push_back(static_cast<float>(score));
    return result;
}

std::optional<bool> read_flag(const gguf::Metadata& metadata, const std::string& key) {
    if (!metadata.has(key)) return std::nullopt;
    return metadata.boolean(key);
}

/// The first of several names of one key that the file has. 2^32 - 1, an unsigned -1, means "none" to some
/// converters.
std::optional<TokenId> read_id(const gguf::Metadata& metadata,
                               std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
        const std::string key = full_key(name);
        if (!metadata.has(key)) continue;
        const std::int64_t id = metadata.integer(key);
        if (id == -1 || id == std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
        if (id < 0 || id > std::numeric_limits<TokenId>::max()) {
            fail(ErrorCode::InvalidFile, "{}: {}: {} is no token id", metadata.file(), key, id);
        }
        return static_cast<TokenId>(id);
    }
    return std::nullopt;
}

SpecialTokenIds read_special_ids(const gguf::Metadata& metadata) {
    return {
        .bos = read_id(metadata, {"bos_token_id"}),
        .eos = read_id(metadata, {"eos_token_id"}),
        .eot = read_id(metadata, {"eot_token_id"}),
        .eom = read_id(metadata, {"eom_token_id"}),
        .unknown = read_id(metadata, {"unknown_token_id"}),
        .separator = read_id(metadata, {"seperator_token_id"}),  // spelt so in the files
        .padding = read_id(metadata, {"padding_token_id"}),
        .fim_prefix = read_id(metadata, {"fim_pre_token_id", "prefix_token_id"}),
        .fim_suffix = read_id(metadata, {"fim_suf_token_id", "suffix_token_id"}),
        .fim_middle = read_id(metadata, {"fim_mid_token_id", "middle_token_id"}),
        .fim_padding = read_id(metadata, {"fim_pad_token_id"}),
        .fim_repository = read_id(metadata, {"fim_rep_token_id"}),
        .fim_file_separator = read_id(metadata, {"fim_sep_token_id"}),
    };
}

}  // namespace

VocabularyData load_vocabulary(const gguf::Metadata& metadata) {
    if (!metadata.has(full_key("model"))) {
        fail(ErrorCode::InvalidFile, "{}: tokenizer.ggml.model is missing: the file has no vocabulary",
             metadata.file());
    }
    return {
        .model = std::string(metadata.string(full_key("model"))),
        .pre = std::string(metadata.string(full_key("pre"), "")),
        .tokens = read_strings(metadata, full_key("tokens")),
        .token_types = read_types(metadata, full_key("token_type")),
        .scores = read_scores(metadata, full_key("scores")),
        .merges = read_strings(metadata, full_key("merges")),
        .special = read_special_ids(metadata),
        .add_bos_token = read_flag(metadata, full_key("add_bos_token")),
        .add_eos_token = read_flag(metadata, full_key("add_eos_token")),
        .add_space_prefix = read_flag(metadata, full_key("add_space_prefix")),
    };
}

}  // namespace coterie
