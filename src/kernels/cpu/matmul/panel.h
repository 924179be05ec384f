#pragma once

#include "kernels/cpu/matmul/form.h"
#include "quant/activation.h"

// Shared by the instruction sets; the including file has included vectors_*.h and group_sum_*.h of its set.

namespace coterie::cpu::matmul::COTERIE_ISA {

inline constexpr int kPanelGroups = 8;
inline constexpr int kGroupSteps = 8;  ///< steps of four values in a group

/// Up to eight groups of 32 values of a strip, unpacked: what a dot product needs besides the activation.
struct Panel {
    Int codes[kPanelGroups][kGroupSteps];  ///< not filled where a sink consumes the codes at once
    Float ds[kPanelGroups][2];             ///< [1] only where each half has its own update
    Float ms[kPanelGroups];
    HalfScales half_scales[kPanelGroups];
    Int half_minima[kPanelGroups];  ///< words: the minimum of each half
};

/// Where one token's quantised activation meets a panel: the arrays of `ActivationRow` from the panel's first
/// group on.
struct ActivationCursor {
    const std::int8_t* quants;
    const float* scales;
    const float* scaled_sums;
    const std::int16_t* half_sums;

    COTERIE_INLINE ActivationCursor(const ActivationRow& row, std::int64_t group)
        : quants(row.quants + group * kGroupValues),
          scales(row.scales + group),
          scaled_sums(row.scaled_sums + group),
          half_sums(row.half_sums + group * 2) {}
};

/// The law's updates of an accumulator by one group.
template <Form kForm>
COTERIE_INLINE Float update(Float accumulator, const Float value[2], const Panel& panel, int g,
                            const ActivationCursor& activation) {
    const Float scale = broadcast(activation.scales + g);
    accumulator = multiply_add(value[0], multiply(panel.ds[g][0], scale), accumulator);
    if constexpr (kForm.scales == Scales::TwoUpdates) {
        accumulator = multiply_add(value[1], multiply(panel.ds[g][1], scale), accumulator);
    }
    if constexpr (kForm.minimum == Minimum::Group) {
        accumulator = multiply_add(panel.ms[g], broadcast(activation.scaled_sums + g), accumulator);
    }
    if constexpr (kForm.minimum == Minimum::Half) {
        const Int minima = dot_words(panel.half_minima[g], broadcast_lane(activation.half_sums + 2 * g));
        accumulator = multiply_add(to_float(minima), multiply(panel.ms[g], scale), accumulator);
    }
    return accumulator;
}

template <Form kForm>
COTERIE_INLINE void group_values(const GroupSum<kForm>& sum, const Panel& panel, int g,
                                 const std::int16_t* half_sums, Float value[2]) {
    constexpr bool kNeedsHalfSums = kForm.offset != 0 || kForm.is_signed;
    const Int halves = kNeedsHalfSums ? broadcast_lane(half_sums + 2 * g) : zero();
    value[0] = sum.value(halves, panel.half_scales[g], 0);
    if constexpr (kForm.scales == Scales::TwoUpdates) value[1] = sum.value(halves, panel.half_scales[g], 1);
}

/// Takes a type's codes as they are unpacked and keeps them, for several tokens.
template <Form kForm, int kChunkGroups>
class PanelSink {
  public:
    COTERIE_INLINE PanelSink(Panel& panel, int first_group) : panel_(panel), first_group_(first_group) {}

    /// Codes 4 * step .. 4 * step + 3 of group `g` of the chunk.
    COTERIE_INLINE void put(int g, int step, Int codes) {
        panel_.codes[first_group_ + g][step] = GroupSum<kForm>::prepare(codes);
    }
    COTERIE_INLINE void finish() {}

  private:
    Panel& panel_;
    int first_group_;
};

/// Takes a type's codes as they are unpacked and multiplies them with one token at once.
template <Form kForm, int kChunkGroups>
class DotSink {
  public:
    COTERIE_INLINE DotSink(Panel& panel, int first_group, const ActivationCursor& activation,
                           Float (*values)[2])
        : panel_(panel), first_group_(first_group), activation_(activation), values_(values) {}

    COTERIE_INLINE void put(int g, int step, Int codes) {
        const int group = first_group_ + g;
        const Int activation = broadcast_lane(activation_.quants + group * kGroupValues + 4 * step);
        sums_[g].add(step, GroupSum<kForm>::prepare(codes), activation, panel_.half_scales[group]);
    }
    COTERIE_INLINE void finish() {
        COTERIE_UNROLL
        for (int g = 0; g < kChunkGroups; ++g) {
            const int group = first_group_ + g;
            group_values(sums_[g], panel_, group, activation_.half_sums, values_[group]);
        }
    }

  private:
    Panel& panel_;
    int first_group_;
    ActivationCursor activation_;
    Float (*values_)[2];
    GroupSum<kForm> sums_[kChunkGroups];
};

}  // namespace coterie::cpu::matmul::COTERIE_ISA
