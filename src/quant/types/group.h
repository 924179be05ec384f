#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "quant/activation.h"

/// The five forms in which the types of docs/canonical-arithmetic.md describe a group of 32 weights. Every
/// block type turns each of its groups into one of them; `value` is the law of decoding, `accumulate` the law
/// of the dot product.
///
/// All factors are small integers and scales of at most 11 significant bits, so that every product below is
/// exact in binary32; only the additions round.
namespace coterie::blocks {

using Codes = std::array<std::int8_t, kGroupValues>;

/// The part of a quantised activation that meets one group of weights.
struct ActivationGroup {
    const std::int8_t* quants;  ///< [32]
    float scale;
    float scaled_sum;
    const std::int16_t* half_sums;  ///< [2]
};

inline constexpr int kHalfValues = static_cast<int>(kGroupValues) / 2;

/// The exact sum of code times quant over half 0 or 1 of the group.
inline std::int32_t half_dot(const Codes& codes, const std::int8_t* quants, int half) {
    std::int32_t sum = 0;
    for (int i = half * kHalfValues; i < (half + 1) * kHalfValues; ++i) sum += codes[i] * quants[i];
    return sum;
}

/// weight = ds * code
struct PlainGroup {
    Codes codes;
    float ds;

    float value(int i) const { return ds * static_cast<float>(codes[i]); }

    float accumulate(const ActivationGroup& x, float acc) const {
        const std::int32_t sum = half_dot(codes, x.quants, 0) + half_dot(codes, x.quants, 1);
        return std::fma(static_cast<float>(sum), ds * x.scale, acc);
    }
};

/// weight = ds * half_scale * code
struct HalfScaledGroup {
    Codes codes;
    std::array<int, 2> half_scales;
    float ds;

    float value(int i) const {
        return ds * static_cast<float>(half_scales[i / kHalfValues]) * static_cast<float>(codes[i]);
    }

    float accumulate(const ActivationGroup& x, float acc) const {
        const std::int32_t sum =
            half_scales[0] * half_dot(codes, x.quants, 0) + half_scales[1] * half_dot(codes, x.quants, 1);
        return std::fma(static_cast<float>(sum), ds * x.scale, acc);
    }
};

/// weight = ds * code + ms
struct MinimumGroup {
    Codes codes;
    float ds;
    float ms;

    float value(int i) const { return ds * static_cast<float>(codes[i]) + ms; }

    float accumulate(const ActivationGroup& x, float acc) const {
        return std::fma(ms, x.scaled_sum, PlainGroup{codes, ds}.accumulate(x, acc));
    }
};

/// weight = ds * half_scale * code + ms * half_minimum
struct HalfMinimaGroup {
    HalfScaledGroup scaled;
    std::array<int, 2> half_minima;
    float ms;

    float value(int i) const {
        return scaled.value(i) + ms * static_cast<float>(half_minima[i / kHalfValues]);
    }

    float accumulate(const ActivationGroup& x, float acc) const {
        const std::int32_t minima = half_minima[0] * x.half_sums[0] + half_minima[1] * x.half_sums[1];
        return std::fma(static_cast<float>(minima), ms * x.scale, scaled.accumulate(x, acc));
    }
};

/// weight = ds of its half * code; two updates of the accumulator
struct TwoScaleGroup {
    Codes codes;
    std::array<float, 2> ds;

    float value(int i) const { return ds[i / kHalfValues] * static_cast<float>(codes[i]); }

    float accumulate(const ActivationGroup& x, float acc) const {
        for (int half = 0; half < 2; ++half) {
            const float sum = static_cast<float>(half_dot(codes, x.quants, half));
            acc = std::fma(sum, ds[half] * x.scale, acc);
        }
        return acc;
    }
};

}  // namespace coterie::blocks
