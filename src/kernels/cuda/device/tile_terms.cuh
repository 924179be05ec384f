#pragma once

#include <cuda_fp16.h>

#include "kernels/cuda/device/group.cuh"
#include "kernels/cuda/device/mma.cuh"

/// What a group's integer sums of 16 rows and 8 tokens add to the accumulators, form by form:
/// docs/canonical-arithmetic.md. Everything before the law's own fma is exact, and a sum of zero is +0.
namespace coterie::cuda {

/// What a group's row multiplies with, as it lies in shared memory.
template <Form kForm>
struct RowTerm;

template <>
struct RowTerm<Form::Plain> {
    float ds;
    __device__ static RowTerm of(const Scales& s) { return {s.ds[0]}; }
};

template <>
struct __align__(8) RowTerm<Form::Minimum> {
    float ds;
    float ms;
    __device__ static RowTerm of(const Scales& s) { return {s.ds[0], s.ms}; }
};

template <>
struct __align__(8) RowTerm<Form::TwoScale> {
    float ds[2];
    __device__ static RowTerm of(const Scales& s) { return {{s.ds[0], s.ds[1]}}; }
};

template <>
struct __align__(16) RowTerm<Form::HalfScaled> {
    float ds;
    float first;
    float second;
    float first_magic;  ///< -first * kMagic
    __device__ static RowTerm of(const Scales& s) {
        const auto first = static_cast<float>(s.half_scales[0]);
        return {s.ds[0], first, static_cast<float>(s.half_scales[1]), __fmul_rn(-first, kMagic)};
    }
};

/// Scales and minima of halves are small integers, exact in binary16.
template <>
struct __align__(16) RowTerm<Form::HalfMinima> {
    float ds;
    float ms;
    __half2 scales;
    __half2 minima;
    __device__ static RowTerm of(const Scales& s) {
        return {s.ds[0], s.ms, halves(s.half_scales), halves(s.half_minima)};
    }

  private:
    __device__ static __half2 halves(const int(&values)[2]) {
        return __halves2half2(__int2half_rn(values[0]), __int2half_rn(values[1]));
    }
};

/// Of a group's token: scale, scaled sum, and where the form wants them the halves' sums.
struct TokenTerm {
    float scale;
    float scaled_sum;
    float half_sums[2];
};

/// first * (sum of the first half) + second * (sum of the second): integers below 2^24, so every step is
/// exact. The first subtraction of kMagic hides in a fused multiply-add.
__device__ __forceinline__ float scaled_halves(std::uint32_t first_sum, std::uint32_t second_sum, float first,
                                               float second, float first_magic) {
    const float product = __fmaf_rn(__uint_as_float(first_sum), first, first_magic);
    return __fmaf_rn(number_of_sum(second_sum), second, product);
}

/// One group's update of one output; `halves` holds the sums of both halves, or `first` that of the whole
/// group.
template <Form kForm>
__device__ __forceinline__ float updated(float acc, std::uint32_t first, std::uint32_t second,
                                         const RowTerm<kForm>& row, const TokenTerm& token) {
    if constexpr (kForm == Form::TwoScale) {
        acc = __fmaf_rn(number_of_sum(first), __fmul_rn(row.ds[0], token.scale), acc);
        return __fmaf_rn(number_of_sum(second), __fmul_rn(row.ds[1], token.scale), acc);
    } else {
        const float factor = __fmul_rn(row.ds, token.scale);
        if constexpr (kForm == Form::HalfScaled) {
            const float sum = scaled_halves(first, second, row.first, row.second, row.first_magic);
            return __fmaf_rn(sum, factor, acc);
        } else if constexpr (kForm == Form::HalfMinima) {
            const float2 scales = __half22float2(row.scales);
            const float2 minima = __half22float2(row.minima);
            const float sum = scaled_halves(first, second, scales.x, scales.y, __fmul_rn(-scales.x, kMagic));
            const float taken =
                __fmaf_rn(minima.y, token.half_sums[1], __fmaf_rn(minima.x, token.half_sums[0], 0.0f));
            acc = __fmaf_rn(sum, factor, acc);
            return __fmaf_rn(taken, __fmul_rn(row.ms, token.scale), acc);
        } else {
            acc = __fmaf_rn(number_of_sum(first), factor, acc);
            if constexpr (kForm == Form::Minimum) acc = __fmaf_rn(row.ms, token.scaled_sum, acc);
            return acc;
        }
    }
}

template <Form kForm>
inline constexpr bool kWantsHalves = kForm != Form::Plain&& kForm != Form::Minimum;

}  // namespace coterie::cuda
