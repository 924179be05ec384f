#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/activation.h"

/// Types without blocks: floating-point weights, whose products keep the activation in binary32, and the
/// number types that are only read (positions, ids, tables).
namespace coterie::plain {

void decode_f32(const std::byte* row, std::int64_t values, float* out);
void decode_f16(const std::byte* row, std::int64_t values, float* out);
void decode_bf16(const std::byte* row, std::int64_t values, float* out);
void decode_f64(const std::byte* row, std::int64_t values, float* out);  ///< rounds to nearest even
void decode_i8(const std::byte* row, std::int64_t values, float* out);
void decode_i16(const std::byte* row, std::int64_t values, float* out);
void decode_i32(const std::byte* row, std::int64_t values, float* out);  ///< rounds to nearest even
void decode_i64(const std::byte* row, std::int64_t values, float* out);  ///< rounds to nearest even

/// Sums in 32 lanes (docs/canonical-arithmetic.md). They read `activation.values`, padded to whole groups.
float dot_f32(const std::byte* row, const ActivationRow& activation);
float dot_f16(const std::byte* row, const ActivationRow& activation);
float dot_bf16(const std::byte* row, const ActivationRow& activation);

}  // namespace coterie::plain
