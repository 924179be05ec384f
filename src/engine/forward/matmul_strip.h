#pragma once

#include <cstdint>

#include "base/error.h"
#include "kernels/cpu/kernels.h"

namespace coterie::engine {

/// Rows [begin, begin + count) of a weight (anything with type, data, row_bytes, columns, scale) for some
/// tokens, then its scale, then its bias: out[t * stride + r].
template <typename Weight>
void matmul_strip(const cpu::KernelTable& kernels, const Weight& weight, const float* bias,
                  std::int64_t begin, std::int64_t count, const ActivationRow* inputs, std::int64_t tokens,
                  float* out, std::int64_t stride) {
    const cpu::MatmulFunction matmul = kernels.matmul[static_cast<std::size_t>(weight.type)];
    matmul({.weights = weight.data + begin * weight.row_bytes,
            .row_bytes = weight.row_bytes,
            .columns = weight.columns,
            .rows = count,
            .activations = inputs,
            .tokens = tokens,
            .out = out,
            .out_token_stride = stride});
    if (weight.scale != 1.0f) {
        for (std::int64_t t = 0; t < tokens; ++t) {
            for (std::int64_t r = 0; r < count; ++r) out[t * stride + r] *= weight.scale;
        }
    }
    if (bias == nullptr) return;
    for (std::int64_t t = 0; t < tokens; ++t)
        kernels.add(out + t * stride, bias + begin, count, out + t * stride);
}

template <typename Weight>
void matmul_strip(const cpu::KernelTable& kernels, const Weight& weight, std::int64_t begin,
                  std::int64_t count, const ActivationRow* inputs, std::int64_t tokens, float* out,
                  std::int64_t stride) {
    matmul_strip(kernels, weight, weight.bias, begin, count, inputs, tokens, out, stride);
}

}  // namespace coterie::engine
