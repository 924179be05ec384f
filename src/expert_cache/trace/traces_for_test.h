#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/split_mix.h"
#include "expert_cache/trace/trace_format.h"

namespace coterie::expert_cache::testing {

/// [layers][used] experts of one token.
using Token = std::vector<std::int32_t>;

inline TraceHeader trace_header(std::int32_t layers, std::int32_t experts, std::int32_t used) {
    TraceHeader header{.model_hash = 0xfeedface12345678, .experts = experts, .used = used, .layers = {}};
    for (std::int32_t i = 0; i < layers; ++i) {
        header.layers.push_back({.layer = i + 1, .expert_bytes = 1000 + static_cast<std::uint64_t>(i)});
    }
    return header;
}

/// Every expert as likely as any other; a layer uses one to `used`.
inline Token random_token(SplitMix64& random, const TraceHeader& header) {
    Token token;
    for (std::size_t layer = 0; layer < header.layers.size(); ++layer) {
        const auto first = static_cast<std::int32_t>(random.next() % static_cast<unsigned>(header.experts));
        const auto count = 1 + static_cast<std::int32_t>(random.next() % static_cast<unsigned>(header.used));
        for (std::int32_t i = 0; i < header.used; ++i) {
            token.push_back(i < count ? (first + i) % header.experts : -1);
        }
    }
    return token;
}

inline void append(std::vector<std::byte>& bytes, const std::vector<std::byte>& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
}

/// A trace of single-token steps without its trailer.
inline std::vector<std::byte> open_trace(const TraceHeader& header, const std::vector<Token>& tokens) {
    std::vector<std::byte> bytes = trace_format::encode_header(header);
    std::vector<std::byte> record(trace_format::record_bytes(header));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        trace_format::encode_record(header, i, static_cast<std::uint32_t>(i), tokens[i], record.data());
        append(bytes, record);
    }
    return bytes;
}

inline std::vector<std::byte> whole_trace(const TraceHeader& header, const std::vector<Token>& tokens) {
    std::vector<std::byte> bytes = open_trace(header, tokens);
    append(bytes, trace_format::encode_trailer(tokens.size()));
    return bytes;
}

/// Where fuzzing starts: whole and cut, with short and long expert numbers.
inline std::vector<std::pair<std::string, std::vector<std::byte>>> fuzz_seeds() {
    SplitMix64 random(1);
    const TraceHeader few = trace_header(2, 4, 2);
    const TraceHeader many = trace_header(1, 300, 3);
    const auto tokens = [&](const TraceHeader& header) {
        return std::vector<Token>{random_token(random, header), random_token(random, header),
                                  random_token(random, header)};
    };
    return {{"whole.trace", whole_trace(few, tokens(few))},
            {"cut.trace", open_trace(few, tokens(few))},
            {"many-experts.trace", whole_trace(many, tokens(many))},
            {"no-tokens.trace", whole_trace(few, {})}};
}

}  // namespace coterie::expert_cache::testing
