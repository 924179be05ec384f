#pragma once

#include "quant/activation.h"

namespace coterie::cpu::matmul::avx2 {

/// `coterie::quantise_activation`, bit for bit.
void quantise_activation(const float* values, std::int64_t columns, const QuantisedActivation& out);

}  // namespace coterie::cpu::matmul::avx2
