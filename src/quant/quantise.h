#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/data_type.h"

namespace coterie {

/// Whether `quantise_row` can write the type: F32, F16, BF16, Q4_0 to Q8_0, Q2_K to Q6_K, IQ4_NL, IQ4_XS and
/// MXFP4.
bool can_quantise(DataType type);

/// Writes `values` (finite; a whole number of blocks) as a row of the type, for tests and synthetic models.
///
/// Q4_0 to Q8_0 and MXFP4 follow the formats' usual rule (the largest magnitude, or the range, sets the
/// scale). The K-quants, IQ4_NL and IQ4_XS use a plain method of ours: the range gives first codes, one
/// least-squares fit gives the scale, and the codes are rounded again with the scales as stored. Tools that
/// search longer get smaller errors.
void quantise_row(DataType type, const float* values, std::int64_t columns, std::byte* out);

}  // namespace coterie
