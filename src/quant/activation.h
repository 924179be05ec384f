#pragma once

#include <cstdint>

namespace coterie {

/// Values per activation group, and the unit in which rows are padded.
inline constexpr std::int64_t kGroupValues = 32;

/// Accumulators of a dot product with a quantised row: group g belongs to number g mod 4.
inline constexpr std::int64_t kAccumulators = 4;

inline constexpr std::int64_t activation_groups(std::int64_t columns) {
    return (columns + kGroupValues - 1) / kGroupValues;
}

/// One token's input to a product, in both forms (docs/canonical-arithmetic.md). A borrowed view; all arrays
/// are padded to whole groups with zeros and start on a 32-byte boundary. A consumer reads `values` for F32,
/// F16 and BF16 weights, and the other arrays for quantised weights; what is not needed may be null.
struct ActivationRow {
    std::int64_t columns = 0;
    const float* values = nullptr;            ///< [groups * 32]
    const std::int8_t* quants = nullptr;      ///< [groups * 32], in -127..127
    const float* scales = nullptr;            ///< [groups]
    const float* scaled_sums = nullptr;       ///< [groups]: scale * float(sum of the group's quants)
    const std::int16_t* half_sums = nullptr;  ///< [groups * 2]: sums of each 16 quants
};

/// Where the quantised form of one row is written; same shapes as in `ActivationRow`.
struct QuantisedActivation {
    std::int8_t* quants;
    float* scales;
    float* scaled_sums;
    std::int16_t* half_sums;
};

/// The law for activations: quantises `columns` values, padding the last group with zeros. Scalar.
void quantise_activation(const float* values, std::int64_t columns, const QuantisedActivation& out);

}  // namespace coterie
