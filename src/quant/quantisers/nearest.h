#pragma once

#include <cmath>

#include "quant/types/four_bit_tables.h"

/// Nearest entries of the tables of four_bit_tables.h.
namespace coterie::blocks {

/// Index of the nearest of IQ4_NL's values, which ascend.
inline int nearest_iq4_index(float x) {
    int index = 0;
    for (std::size_t i = 0; i + 1 < kIq4Values.size(); ++i) {
        const float middle = 0.5f * static_cast<float>(kIq4Values[i] + kIq4Values[i + 1]);
        index += x > middle ? 1 : 0;
    }
    return index;
}

inline int nearest_iq4_value(float x) { return kIq4Values[static_cast<std::size_t>(nearest_iq4_index(x))]; }

/// Index of the nearest doubled FP4 value; the upper eight mirror the lower eight.
inline int nearest_fp4_index(float x) {
    int index = x < 0.0f ? 8 : 0;
    for (std::size_t i = 0; i + 1 < 8; ++i) {
        const float middle = 0.5f * static_cast<float>(kFp4DoubledValues[i] + kFp4DoubledValues[i + 1]);
        index += std::fabs(x) > middle ? 1 : 0;
    }
    return index;
}

}  // namespace coterie::blocks
