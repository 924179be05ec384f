#pragma once

#include <cstdint>

#include "base/aligned_buffer.h"
#include "quant/activation.h"

namespace coterie::engine {

/// Groups that a row of `columns` values takes in an `ActivationStore`: a multiple of 8, so that every array
/// of the row starts on 32 bytes.
constexpr std::int64_t stored_groups(std::int64_t columns) {
    return (activation_groups(columns) + 7) / 8 * 8;
}

/// Memory for the quantised form of rows. The caller places rows by the number of their first group.
class ActivationStore {
  public:
    ActivationStore() = default;
    explicit ActivationStore(std::int64_t groups)
        : quants_(static_cast<std::size_t>(groups * kGroupValues)),
          scales_(static_cast<std::size_t>(groups)),
          scaled_sums_(static_cast<std::size_t>(groups)),
          half_sums_(static_cast<std::size_t>(groups * 2)) {}

    /// Where groups from `group` on are written.
    QuantisedActivation target(std::int64_t group) {
        return {quants_.data() + group * kGroupValues, scales_.data() + group, scaled_sums_.data() + group,
                half_sums_.data() + group * 2};
    }

    /// The row at `group` as an input; `values` is its binary32 form, padded to whole groups, or null.
    ActivationRow view(std::int64_t group, std::int64_t columns, const float* values) const {
        return {columns,
                values,
                quants_.data() + group * kGroupValues,
                scales_.data() + group,
                scaled_sums_.data() + group,
                half_sums_.data() + group * 2};
    }

  private:
    AlignedBuffer<std::int8_t> quants_;
    AlignedBuffer<float> scales_;
    AlignedBuffer<float> scaled_sums_;
    AlignedBuffer<std::int16_t> half_sums_;
};

}  // namespace coterie::engine
