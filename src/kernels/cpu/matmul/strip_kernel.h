#pragma once

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/matmul/panel.h"

// The loops around a type's `Source`, which has
//   kForm, kBlockGroups, kBlockBytes   (kBlockGroups divides kPanelGroups)
//   unpack(strip, first_group, panel, consumer)
// where `unpack` reads one block of each row at `strip`, fills the panel's scales of groups `first_group` on,
// and hands the codes to sinks made by `consumer.chunk<groups>(first_group)`.

namespace coterie::cpu::matmul::COTERIE_ISA {

inline constexpr int kStripsAtOnce = 2;                     ///< share each broadcast of an activation
inline constexpr int kTokensAtOnce = 4;                     ///< share each load of a panel's codes
inline constexpr int kTileTokens = 64;                      ///< their sums stay in the first-level cache
inline constexpr std::int64_t kRowBlockBytes = 192 * 1024;  ///< weights that stay in the second-level cache

template <Form kForm>
struct PanelConsumer {
    Panel& panel;

    template <int kGroups>
    COTERIE_INLINE PanelSink<kForm, kGroups> chunk(int first_group) {
        return {panel, first_group};
    }
};

template <Form kForm>
struct DotConsumer {
    Panel& panel;
    const std::int8_t* quants;
    GroupSum<kForm>* sums;

    template <int kGroups>
    COTERIE_INLINE DotSink<kForm, kGroups> chunk(int first_group) {
        return {panel, first_group, quants, sums};
    }
};

/// Fetches the next strip's bytes while this one is at work, so that the stream from memory never stops.
class StripPrefetch {
  public:
    /// `next` is null after the last strip.
    COTERIE_INLINE explicit StripPrefetch(const std::byte* next) : next_(next) {}

    COTERIE_INLINE void advance(std::int64_t bytes) {
        if (next_ == nullptr) return;
        for (std::int64_t i = 0; i < bytes; i += 64) prefetch(next_ + i);
        next_ += bytes;
    }

  private:
    const std::byte* next_;
};

/// Unpacks `groups` groups (whole blocks) from `strip` on.
template <class Source, class Consumer>
COTERIE_INLINE void unpack_panel(Strip strip, int groups, Panel& panel, Consumer& consumer) {
    for (int g = 0; g < groups; g += Source::kBlockGroups) {
        Source::unpack(strip.at(g / Source::kBlockGroups * Source::kBlockBytes), g, panel, consumer);
    }
}

COTERIE_INLINE int groups_of_panel(std::int64_t groups, std::int64_t first) {
    return groups - first < kPanelGroups ? static_cast<int>(groups - first) : kPanelGroups;
}

/// The law's result of four accumulators. Panels begin at multiples of eight groups, so a group's number
/// within its panel tells its accumulator.
COTERIE_INLINE Float total_of(Float first, Float second, Float third, Float fourth) {
    static_assert(kAccumulators == 4 && kPanelGroups % kAccumulators == 0);
    return add(add(add(add(zero_float(), first), second), third), fourth);
}

/// One strip times one token; `out` gets kStripRows values.
template <class Source>
COTERIE_KERNEL void multiply_token(Strip strip, std::int64_t groups, const ActivationRow& row,
                                   StripPrefetch ahead, float* out) {
    constexpr Form kForm = Source::kForm;
    Panel panel;
    GroupSum<kForm> sums[kPanelGroups];
    Float accumulators[kAccumulators] = {zero_float(), zero_float(), zero_float(), zero_float()};
    for (std::int64_t first = 0; first < groups; first += kPanelGroups) {
        const int count = groups_of_panel(groups, first);
        const std::int64_t bytes = count / Source::kBlockGroups * Source::kBlockBytes;
        ahead.advance(bytes * kStripRows);
        const ActivationCursor activation(row, first);
        DotConsumer<kForm> consumer{panel, activation.quants, sums};
        unpack_panel<Source>(strip, count, panel, consumer);
        strip = strip.at(bytes);
        for (int g = 0; g < count; ++g) {
            Float& accumulator = accumulators[g % kAccumulators];
            accumulator =
                update<kForm>(accumulator, sums[g], panel, g, GroupActivation<kForm>(activation, g));
        }
    }
    store(out, total_of(accumulators[0], accumulators[1], accumulators[2], accumulators[3]));
}

/// The sums of the rows of a few strips with the tokens of a tile.
struct TileSums {
    Float accumulators[kStripsAtOnce][kAccumulators][kTileTokens];
};

/// Adds panels times tokens [t, t + kTokens) to their sums. Each load of codes serves all tokens, each
/// broadcast of an activation all panels.
template <Form kForm, int kStrips, int kTokens>
COTERIE_KERNEL void add_panels(const Panel* panels, int groups, const ActivationRow* rows,
                               std::int64_t first_group, TileSums& tile, int t) {
    const std::int8_t* quants[kTokens];
    for (int k = 0; k < kTokens; ++k) quants[k] = rows[t + k].quants + first_group * kGroupValues;
    for (int g = 0; g < groups; ++g) {
        GroupSum<kForm> sums[kStrips][kTokens];
        COTERIE_UNROLL
        for (int step = 0; step < kGroupSteps; ++step) {
            COTERIE_UNROLL
            for (int k = 0; k < kTokens; ++k) {
                const Int activation = broadcast_lane(quants[k] + g * kGroupValues + 4 * step);
                COTERIE_UNROLL
                for (int s = 0; s < kStrips; ++s) {
                    sums[s][k].add(step, panels[s].codes[g][step], activation, panels[s].half_scales[g]);
                }
            }
        }
        COTERIE_UNROLL
        for (int k = 0; k < kTokens; ++k) {
            const GroupActivation<kForm> activation(ActivationCursor(rows[t + k], first_group), g);
            Float updated[kStrips];
            COTERIE_UNROLL
            for (int s = 0; s < kStrips; ++s) {
                const Float& before = tile.accumulators[s][g % kAccumulators][t + k];
                updated[s] = update<kForm>(before, sums[s][k], panels[s], g, activation);
            }
            COTERIE_UNROLL
            for (int s = 0; s < kStrips; ++s) tile.accumulators[s][g % kAccumulators][t + k] = updated[s];
        }
    }
}

template <Form kForm, int kStrips>
COTERIE_KERNEL void add_panels_to_tile(const Panel* panels, int groups, const ActivationRow* rows, int tokens,
                                       std::int64_t first_group, TileSums& tile) {
    int t = 0;
    for (; t + kTokensAtOnce <= tokens; t += kTokensAtOnce) {
        add_panels<kForm, kStrips, kTokensAtOnce>(panels, groups, rows, first_group, tile, t);
    }
    if (tokens - t >= 2) {
        add_panels<kForm, kStrips, 2>(panels, groups, rows, first_group, tile, t);
        t += 2;
    }
    if (tokens - t == 1) add_panels<kForm, kStrips, 1>(panels, groups, rows, first_group, tile, t);
}

/// Neighbouring strips times up to kTileTokens tokens; leaves their sums in `tile`.
template <class Source, int kStrips>
COTERIE_KERNEL void multiply_tile(Strip strip, std::int64_t groups, const ActivationRow* rows, int tokens,
                                  StripPrefetch ahead, TileSums& tile) {
    constexpr Form kForm = Source::kForm;
    Panel panels[kStrips];
    for (int s = 0; s < kStrips; ++s) {
        for (auto& accumulators : tile.accumulators[s]) {
            for (int t = 0; t < tokens; ++t) accumulators[t] = zero_float();
        }
    }
    for (std::int64_t first = 0; first < groups; first += kPanelGroups) {
        const int count = groups_of_panel(groups, first);
        const std::int64_t bytes = count / Source::kBlockGroups * Source::kBlockBytes;
        ahead.advance(bytes * kStrips * kStripRows);
        for (int s = 0; s < kStrips; ++s) {
            PanelConsumer<kForm> consumer{panels[s]};
            unpack_panel<Source>(strip.at(s * kStripRows * strip.stride), count, panels[s], consumer);
        }
        strip = strip.at(bytes);
        add_panels_to_tile<kForm, kStrips>(panels, count, rows, tokens, first, tile);
    }
}

/// Copies the rows [first, kStripRows) of a strip to `out`.
COTERIE_INLINE void store_rows(float* out, const float* rows, int first) {
    for (int r = first; r < kStripRows; ++r) out[r - first] = rows[r];
}

/// Where a strip's results go.
struct Output {
    float* first;  ///< the first token's first row
    std::int64_t token_stride;
    int skipped;  ///< rows at the strip's start that are not stored
};

/// Rows of `strip` times a tile of tokens.
template <class Source, int kStrips>
COTERIE_INLINE void multiply_strips(Strip strip, std::int64_t groups, const ActivationRow* rows, int tokens,
                                    StripPrefetch ahead, TileSums& tile, const Output& out) {
    alignas(64) float lanes[kStripRows];
    multiply_tile<Source, kStrips>(strip, groups, rows, tokens, ahead, tile);
    for (int t = 0; t < tokens; ++t) {
        for (int s = 0; s < kStrips; ++s) {
            const auto& sums = tile.accumulators[s];
            store(lanes, total_of(sums[0][t], sums[1][t], sums[2][t], sums[3][t]));
            store_rows(out.first + t * out.token_stride + s * kStripRows, lanes, s == 0 ? out.skipped : 0);
        }
    }
}

/// Rows [first_row, end_row) times a tile of tokens. The last strip is moved up to end with the last row, so
/// that no row outside is read; rows that it shares with the strip before are computed twice and stored once.
template <class Source>
COTERIE_KERNEL void multiply_rows(const MatmulArgs& args, std::int64_t first_row, std::int64_t end_row,
                                  std::int64_t first_token, int tokens) {
    const std::int64_t groups = args.columns / kGroupValues;
    const ActivationRow* activations = args.activations + first_token;
    TileSums tile;
    for (std::int64_t r = first_row; r < end_row;) {
        const std::int64_t start = r + kStripRows <= end_row ? r : end_row - kStripRows;
        const bool takes_many = tokens > 1 && r + kStripsAtOnce * kStripRows <= end_row;
        const std::int64_t next = start + (takes_many ? kStripsAtOnce : 1) * kStripRows;
        const Strip strip{args.weights + start * args.row_bytes, args.row_bytes};
        const StripPrefetch ahead(next < end_row ? args.weights + next * args.row_bytes : nullptr);
        const Output out{args.out + first_token * args.out_token_stride + r, args.out_token_stride,
                         static_cast<int>(r - start)};
        if (tokens == 1) {
            alignas(64) float lanes[kStripRows];
            multiply_token<Source>(strip, groups, activations[0], ahead, lanes);
            store_rows(out.first, lanes, out.skipped);
        } else if (takes_many) {
            multiply_strips<Source, kStripsAtOnce>(strip, groups, activations, tokens, ahead, tile, out);
        } else {
            multiply_strips<Source, 1>(strip, groups, activations, tokens, ahead, tile, out);
        }
        r = next;
    }
}

/// Fewer rows than a strip has: each row fills all lanes of a strip of its own.
template <class Source>
COTERIE_KERNEL void multiply_few_rows(const MatmulArgs& args) {
    alignas(64) float lanes[kStripRows];
    const std::int64_t groups = args.columns / kGroupValues;
    for (std::int64_t r = 0; r < args.rows; ++r) {
        const Strip strip{args.weights + r * args.row_bytes, 0};
        for (std::int64_t t = 0; t < args.tokens; ++t) {
            multiply_token<Source>(strip, groups, args.activations[t], StripPrefetch(nullptr), lanes);
            args.out[t * args.out_token_stride + r] = lanes[0];
        }
    }
}

/// Blocks of rows stay in the cache while all tiles of tokens pass, so that weights come from memory once.
template <class Source>
COTERIE_KERNEL void multiply(const MatmulArgs& args) {
    if (args.rows < kStripRows) return multiply_few_rows<Source>(args);
    const std::int64_t strips = kRowBlockBytes / (args.row_bytes * kStripRows);
    const std::int64_t block_rows =
        args.tokens <= kTileTokens ? args.rows : (strips < 1 ? 1 : strips) * kStripRows;
    for (std::int64_t r = 0; r < args.rows;) {
        // A block of fewer rows than a strip at the end would have no rows of its own to move up to.
        const bool is_last = args.rows - r < block_rows + kStripRows;
        const std::int64_t end = is_last ? args.rows : r + block_rows;
        for (std::int64_t t = 0; t < args.tokens; t += kTileTokens) {
            const std::int64_t left = args.tokens - t;
            multiply_rows<Source>(args, r, end, t, static_cast<int>(left < kTileTokens ? left : kTileTokens));
        }
        r = end;
    }
}

}  // namespace coterie::cpu::matmul::COTERIE_ISA
