#pragma once

#include <cstddef>
#include <cstdint>

#include "base/split_mix.h"
#include "quant/data_type.h"

namespace coterie {

/// Random weights of one type, for synthetic models and tests: codes are random bits (every pattern that the
/// type allows), scales are valid and such that the decoded values have mean zero and the wished root mean
/// square.
///
/// Nothing is searched: the scale comes from a sample measured once, at construction. Scales are stored in
/// the type's own format, so a very small `rms` (below 0.001) is met less closely.
class RandomBlocks {
  public:
    /// Any type that has a dot product.
    RandomBlocks(DataType type, float rms);

    /// Writes `blocks` blocks of the type. Thread-safe; the same state of the generator gives the same bytes.
    void fill(SplitMix64& random, std::int64_t blocks, std::byte* out) const {
        fill_(random, scale_, blocks, out);
    }

  private:
    using FillFunction = void (*)(SplitMix64& random, float scale, std::int64_t blocks, std::byte* out);
    static FillFunction find_fill(DataType type);

    FillFunction fill_;
    float scale_;  ///< multiplies the scales of the type's unit block
};

}  // namespace coterie
