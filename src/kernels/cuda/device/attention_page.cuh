#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device/arrival.cuh"
#include "kernels/cuda/device/async_copy.cuh"
#include "kernels/cuda/device/cache_row.cuh"
#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/device/transcendental.cuh"
#include "kernels/cuda/launch.h"

/// Attention of one token's query heads with one page. A block computes it for some heads that share a
/// key-value head: scores by warps (a lane of the law a lane), weights by a warp a head, values by a thread
/// an output. Where pages are few, the last one's block joins them, in ascending order.
namespace coterie::cuda {

inline constexpr int kPagePositions = 64;
inline constexpr int kThreads = 256;   ///< of a block, unless it says otherwise
inline constexpr int kBlockHeads = 4;  ///< query heads of a block
inline constexpr int kOutputs = kBlockHeads * kWidestHead / kThreads;  ///< of a thread
inline constexpr int kJoinPages = 128;                                 ///< whose factors are formed at once

struct PageShared {
    float queries[kBlockHeads][kWidestHead];
    float weights[kBlockHeads][kPagePositions];
    float maximum[kBlockHeads];
    float sum[kBlockHeads];
};

/// What one block works on.
struct Place {
    std::int64_t token;
    int kv_head;
    int first_head;  ///< query head
    int heads;
    int first;  ///< first visible position
    int last;
    const std::uint32_t* pages;
};

__device__ inline Place place_of(const AttentionArgs& args, int head_block, std::int64_t token) {
    const int group = args.heads / args.kv_heads;
    const int blocks = (group + kBlockHeads - 1) / kBlockHeads;
    const int kv = head_block / blocks;
    const int begin = head_block % blocks * kBlockHeads;
    const int last = args.places.positions[token];
    return {.token = token,
            .kv_head = kv,
            .first_head = kv * group + begin,
            .heads = min(kBlockHeads, group - begin),
            .first = args.window > 0 ? max(0, last - args.window + 1) : 0,
            .last = last,
            .pages = args.places.pages +
                     static_cast<std::int64_t>(args.places.sequences[token]) * args.places.page_stride};
}

__device__ inline void load_queries(const AttentionArgs& args, const Place& place, PageShared& shared) {
    const float* queries =
        args.queries.data + place.token * args.queries.stride + place.first_head * args.key_width;
    for (int i = static_cast<int>(threadIdx.x); i < place.heads * args.key_width; i += block_threads())
        shared.queries[i / args.key_width][i % args.key_width] = queries[i];
    __syncthreads();
}

/// Rows [begin, end) of one head in one page: where row r's bytes are, in the page or copied to shared
/// memory.
struct HeadRows {
    const std::byte* first;  ///< of row 0
    std::uint32_t pitch;
    __device__ const std::byte* row(int r) const { return first + static_cast<std::size_t>(r) * pitch; }
};

__device__ inline HeadRows rows_in_page(const CachePages& cache, const PagePartView& part, std::uint32_t page,
                                        int head) {
    return {cache_row(cache, part, page, 0, head), static_cast<std::uint32_t>(part.row_bytes)};
}

/// Asks for rows [begin, end), which are there after `await_copies` and a barrier.
template <typename Unit>
__device__ HeadRows stage(const HeadRows& from, std::uint32_t bytes, int begin, int end, std::byte* to) {
    const unsigned units = bytes / sizeof(Unit);
    const unsigned total = static_cast<unsigned>(max(end - begin, 0)) * units;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < total; i += blockDim.x) {
        const unsigned r = static_cast<unsigned>(begin) + i / units;
        copy_to_shared<sizeof(Unit)>(to + r * bytes + i % units * sizeof(Unit),
                                     from.row(static_cast<int>(r)) + i % units * sizeof(Unit));
    }
    return {to, bytes};
}

/// What one block stages, or nothing where it would not fit or rows do not start on whole units.
struct RowStaging {
    std::uint32_t key_bytes = 0;  ///< of a head's row; 0: not staged
    std::uint32_t value_bytes = 0;
    bool by_sixteen = false;
};

__device__ inline HeadRows staged(const RowStaging& staging, const HeadRows& from, std::uint32_t bytes,
                                  int begin, int end, std::byte* to) {
    if (bytes == 0) return from;
    return staging.by_sixteen ? stage<uint4>(from, bytes, begin, end, to)
                              : stage<uint2>(from, bytes, begin, end, to);
}

/// Of kBlockHeads queries with two keys at once, so that their sums are folded together.
template <cpu::CacheType kType>
__device__ void scores(const AttentionArgs& args, const HeadRows& keys, int begin, int end,
                       PageShared& shared) {
    const int lane = lane_index();
    const int width = args.key_width;
    const bool short_lane = width % 32 != 0 && lane >= width % 32;
    const int warps = block_threads() / 32;
#pragma unroll 1
    for (int r = begin + warp_index(); r < end; r += 2 * warps) {
        const int second = r + warps;
        const std::byte* rows[2] = {keys.row(r), keys.row(min(second, end - 1))};
        float sums[2 * kBlockHeads] = {};
#pragma unroll 2
        for (int i = lane; i < width; i += 32) {
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                const float key = load_cache<kType>(rows[k], i);
#pragma unroll
                for (int h = 0; h < kBlockHeads; ++h)
                    sums[kBlockHeads * k + h] =
                        __fmaf_rn(shared.queries[h][i], key, sums[kBlockHeads * k + h]);
            }
        }
        if (short_lane) {
            for (float& sum : sums) sum = __fadd_rn(sum, 0.0f);
        }
        const float dot = fold_together(sums);
        constexpr int kLanes = 32 / (2 * kBlockHeads);  // that hold the same one
        const int number = lane / kLanes;
        const int position = number < kBlockHeads ? r : second;
        if (lane % kLanes == 0 && position < end)
            shared.weights[number % kBlockHeads][position] = __fmul_rn(dot, args.scale);
    }
    __syncthreads();
}

__device__ inline void soften(int heads, int begin, int end, PageShared& shared) {
    const int h = warp_index();
    if (h < heads) {
        float weight[2];
        float maximum = -INFINITY;
        for (int i = 0; i < 2; ++i) {
            const int r = lane_index() + 32 * i;
            weight[i] = shared.weights[h][r];
            if (r >= begin && r < end) maximum = fmaxf(maximum, weight[i]);
        }
        maximum = warp_maximum(maximum);
        float lane_sum = 0.0f;
        for (int i = 0; i < 2; ++i) {
            const int r = lane_index() + 32 * i;
            const float p = r >= begin && r < end ? law_exp(__fsub_rn(weight[i], maximum)) : 0.0f;
            shared.weights[h][r] = p;
            lane_sum = __fadd_rn(lane_sum, p);
        }
        const float sum = fold_lanes(lane_sum);
        if (lane_index() == 0) {
            shared.maximum[h] = maximum;
            shared.sum[h] = sum;
        }
    }
    __syncthreads();
}

/// `kAhead` rows are read at once: few where they are staged, many where they come from memory.
template <cpu::CacheType kType, int kAhead>
__device__ float page_value(const HeadRows& values, int begin, int end, int h, int d,
                            const PageShared& shared) {
    float value = 0.0f;
#pragma unroll kAhead
    for (int r = begin; r < end; ++r)
        value = __fmaf_rn(shared.weights[h][r], load_cache<kType>(values.row(r), d), value);
    return value;
}

/// The factors of the law's step from one page to the next.
struct Join {
    float a;
    float b;
};

__device__ inline Join join(float before, float page, float joint) {
    return {law_exp(__fsub_rn(before, joint)), law_exp(__fsub_rn(page, joint))};
}

/// A sink, the division, and the result: one output of a head.
__device__ inline float finish(const AttentionArgs& args, int head, float maximum, float sum, float value) {
    if (args.sinks != nullptr) {
        const float sink = args.sinks[head];
        const float joint = maximum < sink ? sink : maximum;
        const float a = law_exp(__fsub_rn(maximum, joint));
        sum = __fmaf_rn(sum, a, law_exp(__fsub_rn(sink, joint)));
        value = __fmul_rn(value, a);
    }
    return __fdiv_rn(value, sum);
}

inline constexpr int kFewPages = 16;  ///< are joined by the last page's block

struct FewShared {
    float maxima[kBlockHeads][kFewPages];
    float sums[kBlockHeads][kFewPages];
    Join factors[kBlockHeads][kFewPages];
};

/// The same as `join_pages` for all heads of a block at once.
__device__ inline void join_few(const AttentionArgs& args, const Place& place, int pages, FewShared& shared) {
    constexpr int kAhead = 8;  // pages whose values are asked for at once
    const int pitch = args.value_width + 2;
    const float* partials =
        args.partials + (place.token * args.heads + place.first_head) * args.pages * pitch;
    const auto partial = [&](int h, int p) {
        return partials + (static_cast<std::int64_t>(h) * args.pages + p) * pitch;
    };
    const int h = static_cast<int>(threadIdx.x) / kFewPages;
    const int p = static_cast<int>(threadIdx.x) % kFewPages;
    const bool mine = h < place.heads && p < pages;
    if (mine) {
        shared.maxima[h][p] = __ldcg(partial(h, p));
        shared.sums[h][p] = __ldcg(partial(h, p) + 1);
    }
    __syncthreads();
    if (mine && p > 0) {
        float before = shared.maxima[h][0];
#pragma unroll 1
        for (int i = 1; i < p; ++i) before = fmaxf(before, shared.maxima[h][i]);
        shared.factors[h][p] = join(before, shared.maxima[h][p], fmaxf(before, shared.maxima[h][p]));
    }
    __syncthreads();
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i / 32 * 32 < place.heads * args.value_width;
         i += block_threads()) {
        const bool inside = i < place.heads * args.value_width;
        const int head = inside ? i / args.value_width : 0;
        const int d = inside ? i % args.value_width : 0;
        float maximum = shared.maxima[head][0];
        float sum = shared.sums[head][0];
        float value = 0.0f;
#pragma unroll 1
        for (int first = 0; first < pages; first += kAhead) {
            float values[kAhead];
#pragma unroll
            for (int k = 0; k < kAhead; ++k)
                values[k] = first + k < pages ? __ldcg(partial(head, first + k) + 2 + d) : 0.0f;
            if (first == 0) value = values[0];
#pragma unroll
            for (int k = 0; k < kAhead; ++k) {
                const int page = first + k;
                if (page == 0 || page >= pages) continue;
                const Join factors = shared.factors[head][page];
                value = __fmaf_rn(value, factors.a, __fmul_rn(values[k], factors.b));
                sum = __fmaf_rn(sum, factors.a, __fmul_rn(shared.sums[head][page], factors.b));
                maximum = fmaxf(maximum, shared.maxima[head][page]);
            }
        }
        value = finish(args, place.first_head + head, maximum, sum, value);
        const int column = place.first_head * args.value_width + i;
        if (inside) args.out[place.token * args.out_stride + column] = value;
        if (args.quantised.quants != nullptr) store_group(args.quantised, place.token, column / 32, value);
    }
}

/// The page that a block works on, of those that its token sees.
struct BlockPage {
    int number;  ///< in the sequence
    int count;   ///< of the token's pages
    int begin;   ///< visible positions
    int end;
};

__device__ inline BlockPage block_page(const Place& place, int index) {
    const int first = place.first / kPagePositions;
    const int number = first + index;
    return {number, place.last / kPagePositions - first + 1, max(place.first - number * kPagePositions, 0),
            min(place.last - number * kPagePositions + 1, kPagePositions)};
}

/// From staged or present rows and shared.queries to the token's result or the page's part of it.
template <cpu::CacheType kKeys, cpu::CacheType kValues>
__device__ void attend_page(const AttentionArgs& args, const Place& place, const BlockPage& page,
                            const HeadRows& keys, const HeadRows& values, PageShared& shared,
                            FewShared& few) {
    scores<kKeys>(args, keys, page.begin, page.end, shared);
    soften(place.heads, page.begin, page.end, shared);
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < place.heads * args.value_width; i += block_threads()) {
        const int h = i / args.value_width;
        const int d = i % args.value_width;
        float* partial =
            args.partials + ((place.token * args.heads + place.first_head + h) * args.pages + blockIdx.x) *
                                (args.value_width + 2);
        partial[2 + d] = page_value<kValues, 8>(values, page.begin, page.end, h, d, shared);
        if (d == 0) {
            partial[0] = shared.maximum[h];
            partial[1] = shared.sum[h];
        }
    }
    if (args.arrivals == nullptr) return;
    if (!arrives_last(args.arrivals[place.token * gridDim.y + blockIdx.y], static_cast<unsigned>(page.count)))
        return;
    join_few(args, place, page.count, few);
}

inline constexpr std::uint32_t kMostStaged =
    40 * 1024;  ///< bytes of a block's shared memory, beside what it has anyway

inline RowStaging row_staging(const AttentionArgs& args) {
    const auto bytes = [](const PagePartView& part, std::int32_t width) {
        return static_cast<std::uint32_t>(cpu::cache_row_bytes(part.type, width));
    };
    const std::uint32_t key_bytes = bytes(args.cache.keys, args.key_width);
    const std::uint32_t value_bytes = bytes(args.cache.values, args.value_width);
    const std::uint64_t all = args.cache.page_bytes | args.cache.keys.offset | args.cache.keys.row_bytes |
                              args.cache.keys.head_bytes | args.cache.values.offset |
                              args.cache.values.row_bytes | args.cache.values.head_bytes | key_bytes |
                              value_bytes;
    if (all % 8 != 0 || (key_bytes + value_bytes) * kPagePositions > kMostStaged) return {};
    return {key_bytes, value_bytes, all % 16 == 0};
}

/// Joins the pages of every head; part of `attention` where they are not few.
void join_pages(const AttentionArgs& args, StreamHandle stream);

}  // namespace coterie::cuda
