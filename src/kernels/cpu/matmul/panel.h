#pragma once

#include "kernels/cpu/matmul/form.h"
#include "kernels/cpu/matmul/target.h"
#include "quant/activation.h"

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

/// What one token brings to the updates by a group; loaded once for all strips.
template <Form kForm>
struct GroupActivation {
    Float scale;
    Float scaled_sum;
    Int half_sums;

    COTERIE_INLINE GroupActivation(const ActivationCursor& activation, int g)
        : scale(broadcast(activation.scales + g)) {
        if constexpr (kForm.minimum == Minimum::Group) scaled_sum = broadcast(activation.scaled_sums + g);
        if constexpr (kForm.minimum == Minimum::Half || GroupSum<kForm>::kUsesHalfSums) {
            half_sums = broadcast_lane(activation.half_sums + 2 * g);
        }
    }
};

/// The law's updates of an accumulator by group `g`.
template <Form kForm>
COTERIE_INLINE Float update(Float accumulator, const GroupSum<kForm>& sum, const Panel& panel, int g,
                            const GroupActivation<kForm>& activation) {
    const Float first = sum.value(activation.half_sums, panel.half_scales[g], 0);
    accumulator = multiply_add(first, multiply(panel.ds[g][0], activation.scale), accumulator);
    if constexpr (kForm.scales == Scales::TwoUpdates) {
        const Float second = sum.value(activation.half_sums, panel.half_scales[g], 1);
        accumulator = multiply_add(second, multiply(panel.ds[g][1], activation.scale), accumulator);
    }
    if constexpr (kForm.minimum == Minimum::Group) {
        accumulator = multiply_add(panel.ms[g], activation.scaled_sum, accumulator);
    }
    if constexpr (kForm.minimum == Minimum::Half) {
        const Float minima = to_float(dot_words(panel.half_minima[g], activation.half_sums));
        accumulator = multiply_add(minima, multiply(panel.ms[g], activation.scale), accumulator);
    }
    return accumulator;
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
    COTERIE_INLINE DotSink(const Panel& panel, int first_group, const std::int8_t* quants,
                           GroupSum<kForm>* sums)
        : panel_(panel),
          first_group_(first_group),
          quants_(quants + first_group * kGroupValues),
          sums_(sums) {}

    COTERIE_INLINE void put(int g, int step, Int codes) {
        const Int activation = broadcast_lane(quants_ + g * kGroupValues + 4 * step);
        chunk_[g].add(step, GroupSum<kForm>::prepare(codes), activation,
                      panel_.half_scales[first_group_ + g]);
    }
    COTERIE_INLINE void finish() {
        COTERIE_UNROLL
        for (int g = 0; g < kChunkGroups; ++g) sums_[first_group_ + g] = chunk_[g];
    }

  private:
    const Panel& panel_;
    int first_group_;
    const std::int8_t* quants_;
    GroupSum<kForm>* sums_;  ///< of the panel's groups
    GroupSum<kForm> chunk_[kChunkGroups];
};

}  // namespace coterie::cpu::matmul::COTERIE_ISA
