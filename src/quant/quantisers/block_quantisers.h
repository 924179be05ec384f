#pragma once

#include "quant/types/four_bit_tables.h"
#include "quant/types/k_quants.h"
#include "quant/types/legacy.h"

/// Each writes one block from its `Block::kValues` finite values.
namespace coterie::blocks {

void quantise(const float* x, Q4_0& block);
void quantise(const float* x, Q4_1& block);
void quantise(const float* x, Q5_0& block);
void quantise(const float* x, Q5_1& block);
void quantise(const float* x, Q8_0& block);
void quantise(const float* x, IQ4_NL& block);
void quantise(const float* x, IQ4_XS& block);
void quantise(const float* x, MXFP4& block);
void quantise(const float* x, Q2_K& block);
void quantise(const float* x, Q3_K& block);
void quantise(const float* x, Q4_K& block);
void quantise(const float* x, Q5_K& block);
void quantise(const float* x, Q6_K& block);

}  // namespace coterie::blocks
