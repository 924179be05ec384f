#include "kernels/cuda/attention.h"
#include "kernels/cuda/device/cache_row.cuh"
#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/device/transcendental.cuh"
#include "kernels/cuda/launch.h"

// A block computes one page for some query heads that share a key-value head: scores by warps (a lane of the
// law a lane), weights by a warp a head, values by a thread an output. Pages are joined in ascending order,
// by a kernel of its own where every page has its block, or by the block that goes through all pages of a
// token.
namespace coterie::cuda {
namespace {

constexpr int kPagePositions = 64;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kBlockHeads = 4;                                  ///< query heads of a block
constexpr int kOutputs = kBlockHeads * kWidestHead / kThreads;  ///< of a thread
constexpr int kJoinPages = 128;                                 ///< whose factors are formed at once

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

__device__ Place place_of(const AttentionArgs& args, int head_block, std::int64_t token) {
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

__device__ void load_queries(const AttentionArgs& args, const Place& place, PageShared& shared) {
    const float* queries =
        args.queries.data + place.token * args.queries.stride + place.first_head * args.key_width;
    for (int i = static_cast<int>(threadIdx.x); i < place.heads * args.key_width; i += kThreads)
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

__device__ HeadRows rows_in_page(const CachePages& cache, const PagePartView& part, std::uint32_t page,
                                 int head) {
    return {cache_row(cache, part, page, 0, head), static_cast<std::uint32_t>(part.row_bytes)};
}

/// Copies visible rows, kReads of each thread under way at once.
template <typename Unit>
__device__ HeadRows stage(const HeadRows& from, std::uint32_t bytes, int begin, int end, std::byte* to) {
    constexpr unsigned kReads = 4;
    const unsigned units = bytes / sizeof(Unit);
    const unsigned total = static_cast<unsigned>(end - begin) * units;
    for (unsigned first = threadIdx.x; first < total; first += kReads * kThreads) {
        Unit read[kReads];
#pragma unroll
        for (unsigned k = 0; k < kReads; ++k) {
            const unsigned i = min(first + k * kThreads, total - 1);
            read[k] = reinterpret_cast<const Unit*>(from.row(begin + static_cast<int>(i / units)))[i % units];
        }
#pragma unroll
        for (unsigned k = 0; k < kReads; ++k) {
            const unsigned i = min(first + k * kThreads, total - 1);
            reinterpret_cast<Unit*>(to + static_cast<unsigned>(begin) * bytes)[i] = read[k];
        }
    }
    return {to, bytes};
}

/// What one block stages, or nothing where it would not fit or rows do not start on whole units.
struct Staging {
    std::uint32_t key_bytes = 0;  ///< of a head's row; 0: not staged
    std::uint32_t value_bytes = 0;
    bool by_sixteen = false;
};

__device__ HeadRows staged(const Staging& staging, const HeadRows& from, std::uint32_t bytes, int begin,
                           int end, std::byte* to) {
    if (bytes == 0) return from;
    return staging.by_sixteen ? stage<uint4>(from, bytes, begin, end, to)
                              : stage<uint2>(from, bytes, begin, end, to);
}

template <cpu::CacheType kType>
__device__ void scores(const AttentionArgs& args, const HeadRows& keys, int begin, int end,
                       PageShared& shared) {
    const int lane = lane_index();
    const int width = args.key_width;
    const bool short_lane = width % 32 != 0 && lane >= width % 32;
#pragma unroll 2
    for (int r = begin + warp_index(); r < end; r += kWarps) {
        const std::byte* key = keys.row(r);
        float acc[kBlockHeads] = {};
#pragma unroll 4
        for (int i = lane; i < width; i += 32) {
            const float k = load_cache<kType>(key, i);
#pragma unroll
            for (int h = 0; h < kBlockHeads; ++h) acc[h] = __fmaf_rn(shared.queries[h][i], k, acc[h]);
        }
#pragma unroll
        for (int h = 0; h < kBlockHeads; ++h) {
            const float dot = fold_lanes(short_lane ? __fadd_rn(acc[h], 0.0f) : acc[h]);
            if (lane == 0) shared.weights[h][r] = __fmul_rn(dot, args.scale);
        }
    }
    __syncthreads();
}

__device__ void soften(int heads, int begin, int end, PageShared& shared) {
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

template <cpu::CacheType kType>
__device__ float page_value(const HeadRows& values, int begin, int end, int h, int d,
                            const PageShared& shared) {
    float value = 0.0f;
#pragma unroll 16
    for (int r = begin; r < end; ++r)
        value = __fmaf_rn(shared.weights[h][r], load_cache<kType>(values.row(r), d), value);
    return value;
}

/// The factors of the law's step from one page to the next.
struct Join {
    float a;
    float b;
};

__device__ Join join(float before, float page, float joint) {
    return {law_exp(__fsub_rn(before, joint)), law_exp(__fsub_rn(page, joint))};
}

/// A sink, the division, and the result: one output of a head.
__device__ float finish(const AttentionArgs& args, int head, float maximum, float sum, float value) {
    if (args.sinks != nullptr) {
        const float sink = args.sinks[head];
        const float joint = maximum < sink ? sink : maximum;
        const float a = law_exp(__fsub_rn(maximum, joint));
        sum = __fmaf_rn(sum, a, law_exp(__fsub_rn(sink, joint)));
        value = __fmul_rn(value, a);
    }
    return __fdiv_rn(value, sum);
}

struct JoinShared {
    float maxima[kJoinPages];
    float sums[kJoinPages];
    Join factors[kJoinPages];
};

/// Joins a head's pages; thread d an output, `threads` of them, whole warps. All threads of the block call
/// it.
__device__ void join_pages(const AttentionArgs& args, std::int64_t token, int head, int d, int threads,
                           JoinShared& shared) {
    const int last = args.places.positions[token];
    const int first = args.window > 0 ? max(0, last - args.window + 1) : 0;
    const int pages = last / kPagePositions - first / kPagePositions + 1;
    const int pitch = args.value_width + 2;
    const float* partials = args.partials + (token * args.heads + head) * args.pages * pitch;
    float maximum = 0.0f;
    float sum = 0.0f;
    float value = 0.0f;
    for (int chunk = 0; chunk < pages; chunk += kJoinPages) {
        const int count = min(kJoinPages, pages - chunk);
        __syncthreads();
        for (int p = d; p < count; p += threads) {
            shared.maxima[p] = __ldcg(partials + static_cast<std::int64_t>(chunk + p) * pitch);
            shared.sums[p] = __ldcg(partials + static_cast<std::int64_t>(chunk + p) * pitch + 1);
        }
        __syncthreads();
        for (int p = d; p < count; p += threads) {
            float before = maximum;  // the largest of all pages before p; without meaning for the first
            for (int i = 0; i < p; ++i)
                before = chunk == 0 && i == 0 ? shared.maxima[0] : fmaxf(before, shared.maxima[i]);
            shared.factors[p] = join(before, shared.maxima[p], fmaxf(before, shared.maxima[p]));
        }
        __syncthreads();
#pragma unroll 4
        for (int p = 0; p < count; ++p) {
            const float page = d < args.value_width
                                   ? __ldcg(partials + static_cast<std::int64_t>(chunk + p) * pitch + 2 + d)
                                   : 0.0f;
            const bool begins = chunk + p == 0;
            const Join factors = shared.factors[p];
            value = begins ? page : __fmaf_rn(value, factors.a, __fmul_rn(page, factors.b));
            sum = begins ? shared.sums[0] : __fmaf_rn(sum, factors.a, __fmul_rn(shared.sums[p], factors.b));
            maximum = begins ? shared.maxima[0] : fmaxf(maximum, shared.maxima[p]);
        }
    }
    if (d / 32 * 32 >= args.value_width) return;
    value = finish(args, head, maximum, sum, value);
    if (d < args.value_width) args.out[token * args.out_stride + head * args.value_width + d] = value;
    if (args.quantised.quants != nullptr)
        store_group(args.quantised, token, (head * args.value_width + d) / 32, value);
}

/// block.x: heads, block.y: tokens.
__global__ void __launch_bounds__(kWidestHead) join_kernel(const AttentionArgs args) {
    await_previous();
    __shared__ JoinShared shared;
    join_pages(args, blockIdx.y, static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x),
               static_cast<int>(blockDim.x), shared);
}

constexpr int kFewPages = 16;  ///< are joined by the last page's block

struct FewShared {
    float maxima[kBlockHeads][kFewPages];
    float sums[kBlockHeads][kFewPages];
    Join factors[kBlockHeads][kFewPages];
};

/// The same as `join_pages` for all heads of a block at once.
__device__ void join_few(const AttentionArgs& args, const Place& place, int pages, FewShared& shared) {
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
        for (int i = 1; i < p; ++i) before = fmaxf(before, shared.maxima[h][i]);
        shared.factors[h][p] = join(before, shared.maxima[h][p], fmaxf(before, shared.maxima[h][p]));
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i / 32 * 32 < place.heads * args.value_width; i += kThreads) {
        const bool inside = i < place.heads * args.value_width;
        const int head = inside ? i / args.value_width : 0;
        const int d = inside ? i % args.value_width : 0;
        float maximum = shared.maxima[head][0];
        float sum = shared.sums[head][0];
        float value = __ldcg(partial(head, 0) + 2 + d);
#pragma unroll 4
        for (int page = 1; page < pages; ++page) {
            const Join factors = shared.factors[head][page];
            value = __fmaf_rn(value, factors.a, __fmul_rn(__ldcg(partial(head, page) + 2 + d), factors.b));
            sum = __fmaf_rn(sum, factors.a, __fmul_rn(shared.sums[head][page], factors.b));
            maximum = fmaxf(maximum, shared.maxima[head][page]);
        }
        value = finish(args, place.first_head + head, maximum, sum, value);
        const int column = place.first_head * args.value_width + i;
        if (inside) args.out[place.token * args.out_stride + column] = value;
        if (args.quantised.quants != nullptr) store_group(args.quantised, place.token, column / 32, value);
    }
}

/// Whether this block is the last of its token's pages.
__device__ bool is_last(const AttentionArgs& args, std::int64_t token, int pages) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        std::uint32_t& arrived = args.arrivals[token * gridDim.y + blockIdx.y];
        last = atomicAdd(&arrived, 1u) + 1 == static_cast<unsigned>(pages);
        if (last) arrived = 0;
    }
    __syncthreads();
    __threadfence();
    return last;
}

/// block.x: pages, block.y: blocks of heads, block.z: tokens.
template <cpu::CacheType kKeys, cpu::CacheType kValues>
__global__ void __launch_bounds__(kThreads) page_kernel(const AttentionArgs args, const Staging staging) {
    await_previous();
    extern __shared__ uint4 staged_rows[];
    __shared__ PageShared shared;
    __shared__ FewShared few;
    const Place place = place_of(args, static_cast<int>(blockIdx.y), blockIdx.z);
    const int first_page = place.first / kPagePositions;
    const int pages = place.last / kPagePositions - first_page + 1;
    const int page = static_cast<int>(blockIdx.x) + first_page;
    if (static_cast<int>(blockIdx.x) >= pages) return;
    const int begin = max(place.first - page * kPagePositions, 0);
    const int end = min(place.last - page * kPagePositions + 1, kPagePositions);
    auto* staged_bytes = reinterpret_cast<std::byte*>(staged_rows);
    const std::uint32_t number = place.pages[page];
    const HeadRows keys = staged(staging, rows_in_page(args.cache, args.cache.keys, number, place.kv_head),
                                 staging.key_bytes, begin, end, staged_bytes);
    const HeadRows values =
        staged(staging, rows_in_page(args.cache, args.cache.values, number, place.kv_head),
               staging.value_bytes, begin, end, staged_bytes + staging.key_bytes * kPagePositions);
    load_queries(args, place, shared);
    scores<kKeys>(args, keys, begin, end, shared);
    soften(place.heads, begin, end, shared);
    for (int i = static_cast<int>(threadIdx.x); i < place.heads * args.value_width; i += kThreads) {
        const int h = i / args.value_width;
        const int d = i % args.value_width;
        float* partial =
            args.partials + ((place.token * args.heads + place.first_head + h) * args.pages + blockIdx.x) *
                                (args.value_width + 2);
        partial[2 + d] = page_value<kValues>(values, begin, end, h, d, shared);
        if (d == 0) {
            partial[0] = shared.maximum[h];
            partial[1] = shared.sum[h];
        }
    }
    if (args.arrivals == nullptr || !is_last(args, place.token, pages)) return;
    join_few(args, place, pages, few);
}

/// block.x: blocks of heads, block.y: tokens; all pages one after the other.
template <cpu::CacheType kKeys, cpu::CacheType kValues>
__global__ void __launch_bounds__(kThreads) serial_kernel(const AttentionArgs args) {
    await_previous();
    __shared__ PageShared shared;
    const Place place = place_of(args, static_cast<int>(blockIdx.x), blockIdx.y);
    load_queries(args, place, shared);
    float maxima[kOutputs];
    float sums[kOutputs];
    float values[kOutputs];
    const int outputs = place.heads * args.value_width;
    const int first_page = place.first / kPagePositions;
    for (int page = first_page; page <= place.last / kPagePositions; ++page) {
        const int begin = max(place.first - page * kPagePositions, 0);
        const int end = min(place.last - page * kPagePositions + 1, kPagePositions);
        scores<kKeys>(args, rows_in_page(args.cache, args.cache.keys, place.pages[page], place.kv_head),
                      begin, end, shared);
        soften(place.heads, begin, end, shared);
        const HeadRows page_rows =
            rows_in_page(args.cache, args.cache.values, place.pages[page], place.kv_head);
#pragma unroll
        for (int i = 0; i < kOutputs; ++i) {
            const int index = i * kThreads + static_cast<int>(threadIdx.x);
            if (index >= outputs) break;
            const int h = index / args.value_width;
            const float value =
                page_value<kValues>(page_rows, begin, end, h, index % args.value_width, shared);
            if (page == first_page) {
                maxima[i] = shared.maximum[h];
                sums[i] = shared.sum[h];
                values[i] = value;
                continue;
            }
            const float joint = fmaxf(maxima[i], shared.maximum[h]);
            const Join factors = join(maxima[i], shared.maximum[h], joint);
            values[i] = __fmaf_rn(values[i], factors.a, __fmul_rn(value, factors.b));
            sums[i] = __fmaf_rn(sums[i], factors.a, __fmul_rn(shared.sum[h], factors.b));
            maxima[i] = joint;
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
        const int index = i * kThreads + static_cast<int>(threadIdx.x);
        if (index / 32 * 32 >= outputs) break;
        const int column = place.first_head * args.value_width + index;
        float value = 0.0f;
        if (index < outputs) {
            value = finish(args, place.first_head + index / args.value_width, maxima[i], sums[i], values[i]);
            args.out[place.token * args.out_stride + column] = value;
        }
        if (args.quantised.quants != nullptr) store_group(args.quantised, place.token, column / 32, value);
    }
}

constexpr std::uint32_t kMostStaged =
    40 * 1024;  ///< bytes of a block's shared memory, beside what it has anyway

Staging staging_for(const AttentionArgs& args) {
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

template <cpu::CacheType kKeys, cpu::CacheType kValues>
void launch(const AttentionArgs& args, StreamHandle stream) {
    const int group = args.heads / args.kv_heads;
    const auto head_blocks = static_cast<unsigned>(args.kv_heads * ((group + kBlockHeads - 1) / kBlockHeads));
    const auto tokens = static_cast<unsigned>(args.queries.rows);
    if (args.partials == nullptr) {
        return launch("attention", serial_kernel<kKeys, kValues>, {dim3(head_blocks, tokens), kThreads},
                      stream, args);
    }
    const Staging staging = staging_for(args);
    const std::uint32_t bytes = (staging.key_bytes + staging.value_bytes) * kPagePositions;
    AttentionArgs paged = args;
    if (args.pages > kFewPages) paged.arrivals = nullptr;
    launch("attention's pages", page_kernel<kKeys, kValues>,
           {dim3(static_cast<unsigned>(args.pages), head_blocks, tokens), kThreads, bytes}, stream, paged,
           staging);
    if (paged.arrivals != nullptr) return;
    const auto threads = static_cast<unsigned>((args.value_width + 31) / 32 * 32);
    launch("attention's join", join_kernel, {dim3(static_cast<unsigned>(args.heads), tokens), threads},
           stream, args);
}

template <cpu::CacheType kKeys>
void launch_keys(const AttentionArgs& args, StreamHandle stream) {
    switch (args.cache.values.type) {
        case cpu::CacheType::F32:
            return launch<kKeys, cpu::CacheType::F32>(args, stream);
        case cpu::CacheType::F16:
            return launch<kKeys, cpu::CacheType::F16>(args, stream);
        case cpu::CacheType::Q8_0:
            return launch<kKeys, cpu::CacheType::Q8_0>(args, stream);
    }
}

}  // namespace

void attention(const AttentionArgs& args, StreamHandle stream) {
    switch (args.cache.keys.type) {
        case cpu::CacheType::F32:
            return launch_keys<cpu::CacheType::F32>(args, stream);
        case cpu::CacheType::F16:
            return launch_keys<cpu::CacheType::F16>(args, stream);
        case cpu::CacheType::Q8_0:
            return launch_keys<cpu::CacheType::Q8_0>(args, stream);
    }
}

}  // namespace coterie::cuda
