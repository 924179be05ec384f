#pragma once

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/matmul/panel.h"
#include "kernels/cpu/matmul/segments.h"

// The loops around a type's `Source`, for any instruction set: the including file has included vectors_*.h
// and group_sum_*.h of its set. A source has
//   kForm, kBlockGroups, kBlockBytes   (kBlockGroups divides kPanelGroups)
//   unpack(strip, first_group, panel, consumer)
// where `unpack` reads one block of each row at `strip`, fills the panel's scales of groups `first_group` on,
// and hands the codes to sinks made by `consumer.chunk<groups>(first_group)`.

namespace coterie::cpu::matmul::COTERIE_ISA {

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
    const ActivationCursor& activation;
    Float (*values)[2];

    template <int kGroups>
    COTERIE_INLINE DotSink<kForm, kGroups> chunk(int first_group) {
        return {panel, first_group, activation, values};
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

/// One strip times one token; `out` gets kStripRows values.
template <class Source>
COTERIE_KERNEL void multiply_token(Strip strip, std::int64_t groups, const ActivationRow& row,
                                   StripPrefetch ahead, float* out) {
    constexpr Form kForm = Source::kForm;
    Panel panel;
    Float values[kPanelGroups][2];
    Float total = zero_float();
    Float accumulator = zero_float();
    SegmentEnds segments(groups);
    for (std::int64_t first = 0; first < groups; first += kPanelGroups) {
        const int count = groups_of_panel(groups, first);
        const std::int64_t bytes = count / Source::kBlockGroups * Source::kBlockBytes;
        ahead.advance(bytes * kStripRows);
        const ActivationCursor activation(row, first);
        DotConsumer<kForm> consumer{panel, activation, values};
        unpack_panel<Source>(strip, count, panel, consumer);
        strip = strip.at(bytes);
        const unsigned ends = segments.advance(count);
        for (int g = 0; g < count; ++g) {
            accumulator = update<kForm>(accumulator, values[g], panel, g, activation);
            if ((ends >> g & 1u) != 0) {
                total = add(total, accumulator);
                accumulator = zero_float();
            }
        }
    }
    store(out, total);
}

/// The sums of a strip's rows with the tokens of a tile.
struct TileSums {
    Float accumulators[kTileTokens];
    Float totals[kTileTokens];
};

/// Adds a panel times tokens [t, t + kTokens) to their sums.
template <Form kForm, int kTokens>
COTERIE_KERNEL void add_panel(const Panel& panel, int groups, unsigned ends, const ActivationRow* rows,
                              std::int64_t first_group, TileSums& tile, int t) {
    const std::int8_t* quants[kTokens];
    for (int k = 0; k < kTokens; ++k) quants[k] = rows[t + k].quants + first_group * kGroupValues;
    for (int g = 0; g < groups; ++g) {
        GroupSum<kForm> sums[kTokens];
        COTERIE_UNROLL
        for (int step = 0; step < kGroupSteps; ++step) {
            const Int codes = panel.codes[g][step];
            COTERIE_UNROLL
            for (int k = 0; k < kTokens; ++k) {
                sums[k].add(step, codes, broadcast_lane(quants[k] + g * kGroupValues + 4 * step),
                            panel.half_scales[g]);
            }
        }
        COTERIE_UNROLL
        for (int k = 0; k < kTokens; ++k) {
            const ActivationCursor activation(rows[t + k], first_group);
            Float value[2];
            group_values(sums[k], panel, g, activation.half_sums, value);
            Float accumulator = update<kForm>(tile.accumulators[t + k], value, panel, g, activation);
            if ((ends >> g & 1u) != 0) {
                tile.totals[t + k] = add(tile.totals[t + k], accumulator);
                accumulator = zero_float();
            }
            tile.accumulators[t + k] = accumulator;
        }
    }
}

template <Form kForm>
COTERIE_KERNEL void add_panel_to_tile(const Panel& panel, int groups, unsigned ends,
                                      const ActivationRow* rows, int tokens, std::int64_t first_group,
                                      TileSums& tile) {
    int t = 0;
    for (; t + kTokensAtOnce <= tokens; t += kTokensAtOnce) {
        add_panel<kForm, kTokensAtOnce>(panel, groups, ends, rows, first_group, tile, t);
    }
    if (tokens - t == 1) add_panel<kForm, 1>(panel, groups, ends, rows, first_group, tile, t);
    if (tokens - t == 2) add_panel<kForm, 2>(panel, groups, ends, rows, first_group, tile, t);
    if (tokens - t == 3) add_panel<kForm, 3>(panel, groups, ends, rows, first_group, tile, t);
}

/// One strip times up to kTileTokens tokens; leaves the results in `tile.totals`.
template <class Source>
COTERIE_KERNEL void multiply_tile(Strip strip, std::int64_t groups, const ActivationRow* rows, int tokens,
                                  StripPrefetch ahead, TileSums& tile) {
    constexpr Form kForm = Source::kForm;
    Panel panel;
    for (int t = 0; t < tokens; ++t) tile.accumulators[t] = tile.totals[t] = zero_float();
    SegmentEnds segments(groups);
    for (std::int64_t first = 0; first < groups; first += kPanelGroups) {
        const int count = groups_of_panel(groups, first);
        const std::int64_t bytes = count / Source::kBlockGroups * Source::kBlockBytes;
        ahead.advance(bytes * kStripRows);
        PanelConsumer<kForm> consumer{panel};
        unpack_panel<Source>(strip, count, panel, consumer);
        strip = strip.at(bytes);
        add_panel_to_tile<kForm>(panel, count, segments.advance(count), rows, tokens, first, tile);
    }
}

/// Copies the rows [first, kStripRows) of a strip to `out`.
COTERIE_INLINE void store_rows(float* out, const float* rows, int first) {
    for (int r = first; r < kStripRows; ++r) out[r - first] = rows[r];
}

/// Rows [first_row, end_row) times a tile of tokens. The last strip is moved up to end with the last row, so
/// that no row outside is read; rows that it shares with the strip before are computed twice and stored once.
template <class Source>
COTERIE_KERNEL void multiply_rows(const MatmulArgs& args, std::int64_t first_row, std::int64_t end_row,
                                  std::int64_t first_token, int tokens) {
    const std::int64_t groups = args.columns / kGroupValues;
    const ActivationRow* activations = args.activations + first_token;
    alignas(64) float one[kStripRows];
    TileSums tile;
    for (std::int64_t r = first_row; r < end_row; r += kStripRows) {
        const std::int64_t start = r + kStripRows <= end_row ? r : end_row - kStripRows;
        const int skipped = static_cast<int>(r - start);
        const std::byte* base = args.weights + start * args.row_bytes;
        const Strip strip{base, args.row_bytes};
        const bool is_last = r + kStripRows >= end_row;
        const StripPrefetch ahead(is_last ? nullptr : base + kStripRows * args.row_bytes);
        float* out = args.out + first_token * args.out_token_stride + r;
        if (tokens == 1) {
            multiply_token<Source>(strip, groups, activations[0], ahead, one);
            store_rows(out, one, skipped);
            continue;
        }
        multiply_tile<Source>(strip, groups, activations, tokens, ahead, tile);
        for (int t = 0; t < tokens; ++t) {
            store(one, tile.totals[t]);
            store_rows(out + t * args.out_token_stride, one, skipped);
        }
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
