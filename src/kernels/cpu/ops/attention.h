#pragma once

// Attention; kernels/reference/attention.cpp is the law. A block of heads goes through a page together, so
// that a page is read and converted to binary32 once per block: keys four rows at a time, values 32 columns
// at a time. All scratch is on the stack, about 22 KiB.
namespace coterie::cpu::COTERIE_ISA {
namespace {

inline constexpr int kPagePositions = 64;
inline constexpr int kHeadBlock = 16;
inline constexpr int kTileRows = 4;
inline constexpr std::int64_t kMaxKeyWidth = 1024;  ///< wider keys take the scalar path

/// The visible rows of one page.
struct PageRows {
    std::int64_t page;
    int begin, end;
};

inline PageRows visible_rows(const AttentionArgs& args, std::int64_t page) {
    const std::int64_t begin = args.first - page * kPagePositions;
    const std::int64_t end = args.last - page * kPagePositions + 1;
    return {page, begin > 0 ? static_cast<int>(begin) : 0,
            end < kPagePositions ? static_cast<int>(end) : kPagePositions};
}

/// What a block of heads carries from page to page.
struct HeadBlock {
    const float* queries;
    float* out;
    int heads;
    float maximum[kHeadBlock];
    float sum[kHeadBlock];
    float keep[kHeadBlock];  ///< factor of what was gathered before the current page
    float join[kHeadBlock];  ///< factor of the current page
    alignas(64) float weights[kHeadBlock][kPagePositions];  ///< scores, then their exponentials
};

/// Four key rows as binary32, each filled up with +0 to whole lanes.
struct KeyTile {
    std::int64_t stride;
    alignas(64) float values[kTileRows * kMaxKeyWidth];
};

inline void load_key_tile(const AttentionArgs& args, const PageRows& rows, int first_row, KeyTile& tile) {
    for (int r = 0; r < kTileRows; ++r) {
        float* out = tile.values + r * tile.stride;
        const int row = first_row + r;
        if (row < rows.begin || row >= rows.end) {
            __builtin_memset(out, 0, static_cast<std::size_t>(tile.stride) * sizeof(float));
            continue;
        }
        const std::byte* key = args.key_pages[rows.page] + row * args.key_stride;
        for (std::int64_t block = 0; block * kLanes < args.key_width; ++block) {
            load_cache_block(args.key_type, key, args.key_width, block, out + block * kLanes);
        }
    }
}

/// sums[h * kTileRows + r] += q k for one vector of columns of Heads queries and four keys.
template <int Heads>
inline void add_products(const Vector (&q)[Heads], const float* keys, std::int64_t stride, Vector* sums) {
    for (int r = 0; r < kTileRows; ++r) {
        const Vector k = load(keys + r * stride);
        for (int h = 0; h < Heads; ++h) sums[h * kTileRows + r] = fma(q[h], k, sums[h * kTileRows + r]);
    }
}

/// The products of one vector's worth of lanes, for Heads queries and four keys. The sums are local, so that
/// they stay in registers.
template <int Heads>
inline void lane_products(const float* queries, std::int64_t width, const KeyTile& tile, int lane,
                          Vector* out) {
    Vector sums[Heads * kTileRows];
    for (Vector& sum : sums) sum = zero();
    Vector q[Heads];
    std::int64_t at = lane;
    for (; at + kWidth <= width; at += kLanes) {
        for (int h = 0; h < Heads; ++h) q[h] = load(queries + h * width + at);
        add_products<Heads>(q, tile.values + at, tile.stride, sums);
    }
    if (at < tile.stride) {
        for (int h = 0; h < Heads; ++h) q[h] = load_first(queries + h * width + at, width - at);
        add_products<Heads>(q, tile.values + at, tile.stride, sums);
    }
    for (int i = 0; i < Heads * kTileRows; ++i) out[i] = sums[i];
}

/// The scores of Heads queries (one or two) with four keys: scores[h * kPagePositions + r].
template <int Heads>
void score_tile(const AttentionArgs& args, const float* queries, const KeyTile& tile, float* scores) {
    Vector sums[kLaneVectors][Heads * kTileRows];
    for (int j = 0; j < kLaneVectors; ++j) {
        lane_products<Heads>(queries, args.key_width, tile, j * kWidth, sums[j]);
    }
    __m256 folded[2 * kTileRows];
    for (int i = 0; i < 2 * kTileRows; ++i) {
        Vector lanes[kLaneVectors];
        for (int j = 0; j < kLaneVectors; ++j) lanes[j] = sums[j][i % (Heads * kTileRows)];
        folded[i] = fold_to_eight(lanes);
    }
    const __m256 scaled = _mm256_mul_ps(fold_each_to_one(folded), _mm256_set1_ps(args.scale));
    _mm_storeu_ps(scores, _mm256_castps256_ps128(scaled));
    if constexpr (Heads == 2) _mm_storeu_ps(scores + kPagePositions, _mm256_extractf128_ps(scaled, 1));
}

inline void score_page(const AttentionArgs& args, const PageRows& rows, HeadBlock& block, KeyTile& tile) {
    for (int row = rows.begin / kTileRows * kTileRows; row < rows.end; row += kTileRows) {
        load_key_tile(args, rows, row, tile);
        int h = 0;
        for (; h + 2 <= block.heads; h += 2) {
            score_tile<2>(args, block.queries + h * args.key_width, tile, block.weights[h] + row);
        }
        if (h < block.heads) {
            score_tile<1>(args, block.queries + h * args.key_width, tile, block.weights[h] + row);
        }
    }
}

/// Turns a head's scores into exponentials, 0 for rows that are not visible, and joins its maximum and sum.
inline void weigh_page(const PageRows& rows, bool first_page, int h, HeadBlock& block) {
    float* weights = block.weights[h];
    const float page_maximum = largest(weights + rows.begin, rows.end - rows.begin);
    for (int r = 0; r < rows.begin; ++r) weights[r] = -__builtin_inff();
    for (int r = rows.end; r < kPagePositions; ++r) weights[r] = -__builtin_inff();
    const float page_sum = exp_and_sum(weights, page_maximum, kPagePositions, weights);
    if (first_page) {
        block.maximum[h] = page_maximum;
        block.sum[h] = page_sum;
        return;
    }
    const float joint = block.maximum[h] < page_maximum ? page_maximum : block.maximum[h];
    block.keep[h] = exp(block.maximum[h] - joint);
    block.join[h] = exp(page_maximum - joint);
    block.sum[h] = __builtin_fmaf(block.sum[h], block.keep[h], page_sum * block.join[h]);
    block.maximum[h] = joint;
}

/// 32 columns of a page's visible values as binary32.
struct ValueTile {
    alignas(64) float values[kPagePositions][kLanes];
};

inline void load_value_tile(const AttentionArgs& args, const PageRows& rows, std::int64_t column,
                            ValueTile& tile) {
    for (int r = rows.begin; r < rows.end; ++r) {
        const std::byte* row = args.value_pages[rows.page] + r * args.value_stride;
        load_cache_block(args.value_type, row, args.value_width, column / kLanes, tile.values[r]);
    }
}

/// Adds the weighted values of two vectors of columns to Heads outputs, from head `h` of the block on.
template <int Heads>
void gather_columns(const AttentionArgs& args, const PageRows& rows, const HeadBlock& block, int h,
                    const ValueTile& tile, std::int64_t column, int offset, bool first_page) {
    Vector sums[Heads][2];
    for (auto& sum : sums) sum[0] = sum[1] = zero();
    for (int r = rows.begin; r < rows.end; ++r) {
        const Vector low = load(tile.values[r] + offset);
        const Vector high = load(tile.values[r] + offset + kWidth);
        for (int i = 0; i < Heads; ++i) {
            const Vector weight = broadcast(block.weights[h + i][r]);
            sums[i][0] = fma(weight, low, sums[i][0]);
            sums[i][1] = fma(weight, high, sums[i][1]);
        }
    }
    for (int i = 0; i < Heads; ++i) {
        for (int half = 0; half < 2; ++half) {
            const std::int64_t at = column + offset + half * kWidth;
            const std::int64_t left = args.value_width - at;
            float* out = block.out + (h + i) * args.out_stride + at;
            Vector result = sums[i][half];
            if (!first_page) {
                const Vector page = result * broadcast(block.join[h + i]);
                result = fma(load_first(out, left), broadcast(block.keep[h + i]), page);
            }
            store_first(out, result, left);
        }
    }
}

inline void gather_page(const AttentionArgs& args, const PageRows& rows, bool first_page,
                        const HeadBlock& block, ValueTile& tile) {
    for (std::int64_t column = 0; column < args.value_width; column += kLanes) {
        load_value_tile(args, rows, column, tile);
        for (int offset = 0; offset < kLanes && column + offset < args.value_width; offset += 2 * kWidth) {
            int h = 0;
            for (; h + 4 <= block.heads; h += 4) {
                gather_columns<4>(args, rows, block, h, tile, column, offset, first_page);
            }
            if (h + 2 <= block.heads) {
                gather_columns<2>(args, rows, block, h, tile, column, offset, first_page);
                h += 2;
            }
            if (h < block.heads) gather_columns<1>(args, rows, block, h, tile, column, offset, first_page);
        }
    }
}

/// The sink and the division.
inline void finish_head(const AttentionArgs& args, const float* sink, int h, HeadBlock& block) {
    float* out = block.out + h * args.out_stride;
    float sum = block.sum[h];
    if (sink) {
        const float joint = block.maximum[h] < *sink ? *sink : block.maximum[h];
        const float keep = exp(block.maximum[h] - joint);
        sum = __builtin_fmaf(sum, keep, exp(*sink - joint));
        scale(out, keep, args.value_width, out);
    }
    divide(out, sum, args.value_width);
}

void attend_block(const AttentionArgs& args, std::int64_t first_head) {
    union {  // keys are done with before values begin
        KeyTile keys;
        ValueTile values;
    } tile;
    HeadBlock block;
    block.queries = args.queries + first_head * args.key_width;
    block.out = args.out + first_head * args.out_stride;
    const std::int64_t left = args.heads - first_head;
    block.heads = left < kHeadBlock ? static_cast<int>(left) : kHeadBlock;

    const std::int64_t first_page = args.first / kPagePositions;
    for (std::int64_t page = first_page; page <= args.last / kPagePositions; ++page) {
        const PageRows rows = visible_rows(args, page);
        tile.keys.stride = (args.key_width + kLanes - 1) / kLanes * kLanes;
        score_page(args, rows, block, tile.keys);
        for (int h = 0; h < block.heads; ++h) weigh_page(rows, page == first_page, h, block);
        gather_page(args, rows, page == first_page, block, tile.values);
    }
    for (int h = 0; h < block.heads; ++h) {
        finish_head(args, args.sinks ? args.sinks + first_head + h : nullptr, h, block);
    }
}

void attention(const AttentionArgs& args) {
    if (args.key_width > kMaxKeyWidth) return reference::attention(args);
    for (std::int64_t head = 0; head < args.heads; head += kHeadBlock) attend_block(args, head);
}

}  // namespace
}  // namespace coterie::cpu::COTERIE_ISA
