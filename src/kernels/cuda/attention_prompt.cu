#include <algorithm>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device/cache_row.cuh"
#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/device/transcendental.cuh"
#include "kernels/cuda/launch.h"

// Attention for steps of many tokens. A block takes a few neighbouring tokens, a warp each, and up to four
// query heads that share a key-value head; pages of keys and values come to shared memory once for all of
// them. Every sum is that of the law, as in attention.cu: lanes of a score are a warp's, values are added in
// the order of positions, pages in ascending order.
namespace coterie::cuda {
namespace {

constexpr int kPagePositions = 64;
constexpr int kTokens = 8;  ///< of a block, a warp each
constexpr int kThreads = 32 * kTokens;
constexpr int kHeads = 4;
constexpr int kScores = 32 / kHeads;  ///< positions whose scores a warp forms at once
constexpr int kStagedFloats = 8192;

/// kChunks: a head's width in lanes of 32, at most.
template <int kChunks>
struct Shared {
    static constexpr int kPositions = kStagedFloats / 32 / kChunks;
    float rows[kPositions][32 * kChunks];  ///< of keys or values, filled up with +0
    float weights[kTokens][kPagePositions][kHeads];
};

struct HeadBlock {
    int kv_head;
    int first;  ///< query head
    int count;
};

__device__ HeadBlock head_block(const AttentionArgs& args, int number) {
    const int group = args.heads / args.kv_heads;
    const int blocks = (group + kHeads - 1) / kHeads;
    const int begin = number % blocks * kHeads;
    return {number / blocks, number / blocks * group + begin, min(kHeads, group - begin)};
}

/// Visible positions of a token; none: last < first.
struct Range {
    int first;
    int last;
};

__device__ Range range_of(const AttentionArgs& args, int token) {
    const int last = args.places.positions[token];
    return {args.window > 0 ? max(0, last - args.window + 1) : 0, last};
}

__device__ bool in_cell(const AttentionArgs& args, int token) {
    return args.places.in_cells != nullptr && args.places.in_cells[token] != 0;
}

__device__ float load(cpu::CacheType type, const std::byte* row, int i) {
    if (type == cpu::CacheType::F32) return load_cache<cpu::CacheType::F32>(row, i);
    if (type == cpu::CacheType::F16) return load_cache<cpu::CacheType::F16>(row, i);
    return load_cache<cpu::CacheType::Q8_0>(row, i);
}

/// Positions [first, first + kPositions) of a page; positions that hold nothing yet come along unread.
template <int kChunks>
__device__ void stage(const AttentionArgs& args, const PagePartView& part, std::uint32_t page, int first,
                      int kv_head, int width, Shared<kChunks>& shared) {
    __syncthreads();
    for (int r = warp_index(); r < Shared<kChunks>::kPositions; r += kTokens) {
        const std::byte* row = cache_row(args.cache, part, page, first + r, kv_head);
#pragma unroll
        for (int j = 0; j < kChunks; ++j) {
            const int i = 32 * j + lane_index();
            if (32 * j < width) shared.rows[r][i] = i < width ? load(part.type, row, i) : 0.0f;
        }
    }
    __syncthreads();
}

/// One warp's token.
template <int kChunks>
class Token {
  public:
    __device__ Token(const AttentionArgs& args, const HeadBlock& heads, int token, bool exists)
        : args_(args), heads_(heads), token_(token) {
        if (exists) range_ = range_of(args, token);
        const float* row = args.queries.data + token * args.queries.stride + heads.first * args.key_width;
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
#pragma unroll
            for (int j = 0; j < kChunks; ++j) {
                const int i = 32 * j + lane_index();
                const bool there = exists && h < heads.count && i < args.key_width;
                queries_[h][j] = there ? row[h * args.key_width + i] : 0.0f;
            }
        }
    }

    __device__ bool sees(int page) const {
        return page >= range_.first / kPagePositions && page * kPagePositions <= range_.last;
    }
    /// Of the page, the positions that are visible.
    __device__ int begin(int page) const { return max(range_.first - page * kPagePositions, 0); }
    __device__ int end(int page) const {
        return min(range_.last - page * kPagePositions + 1, kPagePositions);
    }

    /// Scores of the staged keys, positions [first, first + kPositions) of the page.
    __device__ void score(const Shared<kChunks>& shared, int page, int first,
                          float (&weights)[kPagePositions][kHeads]) const {
        for (int r = 0; r < Shared<kChunks>::kPositions; r += kScores) {
            if (first + r + kScores <= begin(page) || first + r >= end(page)) continue;
            float sums[32] = {};
#pragma unroll
            for (int j = 0; j < kChunks; ++j) {
                if (32 * j >= args_.key_width) break;
#pragma unroll
                for (int p = 0; p < kScores; ++p) {
                    const float key = shared.rows[r + p][32 * j + lane_index()];
#pragma unroll
                    for (int h = 0; h < kHeads; ++h)
                        sums[kHeads * p + h] = __fmaf_rn(queries_[h][j], key, sums[kHeads * p + h]);
                }
            }
            weights[first + r + lane_index() / kHeads][lane_index() % kHeads] =
                __fmul_rn(fold_together(sums), args_.scale);
        }
        __syncwarp();
    }

    /// Scores to weights, with their maximum and sum.
    __device__ void soften(int page, float (&weights)[kPagePositions][kHeads]) {
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
            float maximum = -INFINITY;
            float scores[2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int r = lane_index() + 32 * i;
                scores[i] = weights[r][h];
                if (r >= begin(page) && r < end(page)) maximum = fmaxf(maximum, scores[i]);
            }
            maximum = warp_maximum(maximum);
            float lane = 0.0f;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int r = lane_index() + 32 * i;
                const bool visible = r >= begin(page) && r < end(page);
                const float weight = visible ? law_exp(__fsub_rn(scores[i], maximum)) : 0.0f;
                weights[r][h] = weight;
                lane = __fadd_rn(lane, weight);
            }
            page_maxima_[h] = maximum;
            page_sums_[h] = fold_lanes(lane);
#pragma unroll
            for (int j = 0; j < kChunks; ++j) page_values_[h][j] = 0.0f;
        }
        __syncwarp();
    }

    /// Adds the staged values, positions [first, first + kPositions) of the page.
    __device__ void add_values(const Shared<kChunks>& shared, int page, int first,
                               const float (&weights)[kPagePositions][kHeads]) {
        const int from = max(begin(page), first);
        const int to = min(end(page), first + Shared<kChunks>::kPositions);
        for (int r = from; r < to; ++r) {
            const float4 weight = *reinterpret_cast<const float4*>(weights[r]);
#pragma unroll
            for (int j = 0; j < kChunks; ++j) {
                if (32 * j >= args_.value_width) break;
                const float value = shared.rows[r - first][32 * j + lane_index()];
                page_values_[0][j] = __fmaf_rn(weight.x, value, page_values_[0][j]);
                page_values_[1][j] = __fmaf_rn(weight.y, value, page_values_[1][j]);
                page_values_[2][j] = __fmaf_rn(weight.z, value, page_values_[2][j]);
                page_values_[3][j] = __fmaf_rn(weight.w, value, page_values_[3][j]);
            }
        }
    }

    __device__ void join(int page) {
        const bool first = page == range_.first / kPagePositions;
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
            const float joint = first ? page_maxima_[h] : fmaxf(maxima_[h], page_maxima_[h]);
            const float a = law_exp(__fsub_rn(maxima_[h], joint));
            const float b = law_exp(__fsub_rn(page_maxima_[h], joint));
            maxima_[h] = joint;
            sums_[h] = first ? page_sums_[h] : __fmaf_rn(sums_[h], a, __fmul_rn(page_sums_[h], b));
#pragma unroll
            for (int j = 0; j < kChunks; ++j)
                values_[h][j] = first ? page_values_[h][j]
                                      : __fmaf_rn(values_[h][j], a, __fmul_rn(page_values_[h][j], b));
        }
    }

    __device__ void store() {
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
            if (h >= heads_.count) break;
            const int head = heads_.first + h;
            const float a = args_.sinks != nullptr ? take_sink(args_.sinks[head], h) : 1.0f;
#pragma unroll
            for (int j = 0; j < kChunks; ++j) {
                if (32 * j >= args_.value_width) break;
                const int i = 32 * j + lane_index();
                const float value = args_.sinks != nullptr ? __fmul_rn(values_[h][j], a) : values_[h][j];
                store_output(head * args_.value_width + i, i < args_.value_width, __fdiv_rn(value, sums_[h]));
            }
        }
    }

  private:
    /// The factor of the values.
    __device__ float take_sink(float sink, int h) {
        const float joint = maxima_[h] < sink ? sink : maxima_[h];
        const float a = law_exp(__fsub_rn(maxima_[h], joint));
        sums_[h] = __fmaf_rn(sums_[h], a, law_exp(__fsub_rn(sink, joint)));
        return a;
    }

    /// Rows that are quantised have heads of whole groups.
    __device__ void store_output(int column, bool exists, float value) const {
        if (exists) args_.out[token_ * args_.out_stride + column] = value;
        if (args_.quantised.quants != nullptr) store_group(args_.quantised, token_, column / 32, value);
    }

    const AttentionArgs& args_;
    const HeadBlock heads_;
    const std::int64_t token_;
    Range range_{0, -1};
    float queries_[kHeads][kChunks];
    float page_maxima_[kHeads];
    float page_sums_[kHeads];
    float page_values_[kHeads][kChunks];
    float maxima_[kHeads] = {};
    float sums_[kHeads] = {};
    float values_[kHeads][kChunks] = {};
};

/// Tokens [first, end) of one sequence.
template <int kChunks>
__device__ void attend(const AttentionArgs& args, const HeadBlock& heads, int first, int end,
                       Shared<kChunks>& shared) {
    constexpr int kPositions = Shared<kChunks>::kPositions;
    const int mine = first + warp_index();
    Token<kChunks> token(args, heads, min(mine, end - 1), mine < end);
    auto& weights = shared.weights[warp_index()];
    Range all = range_of(args, first);
    for (int t = first + 1; t < end; ++t) {
        const Range range = range_of(args, t);
        all = {min(all.first, range.first), max(all.last, range.last)};
    }
    const std::uint32_t* pages =
        args.places.pages + static_cast<std::int64_t>(args.places.sequences[first]) * args.places.page_stride;
    for (int page = all.first / kPagePositions; page <= all.last / kPagePositions; ++page) {
        const bool sees = token.sees(page);
        for (int r = 0; r < kPagePositions; r += kPositions) {
            stage(args, args.cache.keys, pages[page], r, heads.kv_head, args.key_width, shared);
            if (sees) token.score(shared, page, r, weights);
        }
        if (sees) token.soften(page, weights);
        for (int r = 0; r < kPagePositions; r += kPositions) {
            stage(args, args.cache.values, pages[page], r, heads.kv_head, args.value_width, shared);
            if (sees) token.add_values(shared, page, r, weights);
        }
        if (sees) token.join(page);
    }
    if (mine < end) token.store();
}

/// block.x: tokens in eights; block.y: blocks of heads.
template <int kChunks>
__global__ void __launch_bounds__(kThreads, kChunks <= 4 ? 2 : 1) prompt_kernel(const AttentionArgs args) {
    await_previous();
    __shared__ __align__(16) Shared<kChunks> shared;
    const HeadBlock heads = head_block(args, static_cast<int>(blockIdx.y));
    int first = static_cast<int>(blockIdx.x) * kTokens;
    const int end = min(first + kTokens, args.queries.rows);
    while (first < end) {
        int run_end = first + 1;
        while (run_end < end && args.places.sequences[run_end] == args.places.sequences[first] &&
               in_cell(args, run_end) == in_cell(args, first))
            ++run_end;
        if (!in_cell(args, first)) attend(args, heads, first, run_end, shared);
        first = run_end;
    }
}

}  // namespace

void prompt_attention(const AttentionArgs& args, StreamHandle stream) {
    const int group = args.heads / args.kv_heads;
    const dim3 grid(static_cast<unsigned>((args.queries.rows + kTokens - 1) / kTokens),
                    static_cast<unsigned>(args.kv_heads * ((group + kHeads - 1) / kHeads)));
    if (std::max(args.key_width, args.value_width) <= 128) {
        launch("attention of a prompt", prompt_kernel<4>, {grid, kThreads, 0, true}, stream, args);
    } else {
        launch("attention of a prompt", prompt_kernel<8>, {grid, kThreads, 0, true}, stream, args);
    }
}

}  // namespace coterie::cuda
