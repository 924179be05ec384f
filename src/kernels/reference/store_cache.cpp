#include <cstring>

#include "kernels/reference/cache_row.h"
#include "kernels/reference/reference.h"
#include "quant/activation.h"
#include "quant/half.h"

namespace coterie::reference {
namespace {

// The rule for activations (docs/canonical-arithmetic.md), with the scale rounded to binary16 when it is
// stored: a scale beyond binary16 is infinity, infinite or NaN values give a NaN scale.
void store_q8_block(const float* x, std::byte* block) {
    std::int8_t quants[kQ8BlockValues];
    float scale = 0.0f;
    float scaled_sum = 0.0f;
    std::int16_t half_sums[2];
    quantise_activation(
        x, kQ8BlockValues,
        {.quants = quants, .scales = &scale, .scaled_sums = &scaled_sum, .half_sums = half_sums});
    const std::uint16_t half = f32_to_f16(scale);
    std::memcpy(block, &half, sizeof half);
    std::memcpy(block + kQ8ScaleBytes, quants, sizeof quants);
}

}  // namespace

// F32: the values. F16: each rounded to nearest even. Q8_0: blocks of 32 as above.
void store_cache(cpu::CacheType type, const float* x, std::int64_t n, std::byte* out) {
    if (type == cpu::CacheType::F32) {
        std::memcpy(out, x, static_cast<std::size_t>(n) * sizeof(float));
        return;
    }
    if (type == cpu::CacheType::F16) {
        for (std::int64_t i = 0; i < n; ++i) {
            const std::uint16_t half = f32_to_f16(x[i]);
            std::memcpy(out + i * 2, &half, sizeof half);
        }
        return;
    }
    for (std::int64_t i = 0; i < n; i += kQ8BlockValues) {
        store_q8_block(x + i, out + i / kQ8BlockValues * kQ8BlockBytes);
    }
}

// Q8_0: float(q) * d, exact.
float load_cache(cpu::CacheType type, const std::byte* row, std::int64_t i) {
    if (type == cpu::CacheType::F32) {
        float value = 0.0f;
        std::memcpy(&value, row + i * 4, sizeof value);
        return value;
    }
    std::uint16_t half = 0;
    if (type == cpu::CacheType::F16) {
        std::memcpy(&half, row + i * 2, sizeof half);
        return f16_to_f32(half);
    }
    const std::byte* block = row + i / kQ8BlockValues * kQ8BlockBytes;
    std::memcpy(&half, block, sizeof half);
    const auto quant = static_cast<std::int8_t>(block[kQ8ScaleBytes + i % kQ8BlockValues]);
    return static_cast<float>(quant) * f16_to_f32(half);
}

}  // namespace coterie::reference
