#pragma once

#include <cstdint>

/// The five forms of a group of 32 weights: docs/canonical-arithmetic.md, in the
/// words of src/quant/types/group.h.
///
/// A type of weights (device/types/) is a struct of constants and two functions:
///
///     kBlockBytes, kGroups      a block and its groups of 32 values
///     kForm
///     word(block, g, w)         codes 4 w .. 4 w + 3 of group g as signed bytes
///     scales(block, g)          the parts of Scales that the form wants
///
/// Where codes are bits of words, a type may give these bits where they are, so that a product need not shift
/// them first:
///
///     kPlanes
///     plane(block, g, half, p)  the words of plane p of a half, four unsigned bytes each
///     sum_of_planes(sums, g, quants_sum)   the dot product of codes, from those of planes
namespace coterie::cuda {

enum class Form { Plain, HalfScaled, Minimum, HalfMinima, TwoScale };

struct Scales {
    float ds[2];         ///< the second: TwoScale
    float ms;            ///< Minimum, HalfMinima
    int half_scales[2];  ///< HalfScaled, HalfMinima
    int half_minima[2];  ///< HalfMinima
};

/// Forms whose products want the sums of an input's halves; of HalfScaled the planes do.
template <Form kForm>
inline constexpr bool kReadsHalfSums = kForm == Form::HalfScaled || kForm == Form::HalfMinima;

template <Form kForm>
inline constexpr bool kHasHalfScales = kForm == Form::HalfScaled || kForm == Form::HalfMinima;

}  // namespace coterie::cuda
