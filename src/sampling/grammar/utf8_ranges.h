#pragma once

#include <cstdint>
#include <vector>

#include "sampling/grammar/rule_set.h"

namespace coterie::grammar {

struct ByteRange {
    std::uint8_t first;
    std::uint8_t last;
    auto operator<=>(const ByteRange&) const = default;
};

/// One byte of each range in turn: the UTF-8 forms of some characters.
using ByteSequence = std::vector<ByteRange>;

/// The UTF-8 forms of the characters of a range without surrogates, as disjoint sequences.
std::vector<ByteSequence> utf8_sequences(CodeRange range);

}  // namespace coterie::grammar
