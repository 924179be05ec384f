#include "kernels/cuda/attention.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/device/cache_row.cuh"
#include "kernels/cuda/device/transcendental.cuh"

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

template <cpu::CacheType kType>
__device__ void scores(const AttentionArgs& args, const Place& place, int page, int begin, int end,
                       PageShared& shared) {
    const int lane = lane_index();
    const int width = args.key_width;
    const bool short_lane = width % 32 != 0 && lane >= width % 32;
    for (int r = begin + warp_index(); r < end; r += kWarps) {
        const std::byte* key = cache_row(args.cache, args.cache.keys, place.pages[page], r, place.kv_head);
        float acc[kBlockHeads] = {};
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
__device__ float page_value(const AttentionArgs& args, const Place& place, int page, int begin, int end,
                            int h, int d, const PageShared& shared) {
    const std::byte* row = cache_row(args.cache, args.cache.values, place.pages[page], begin, place.kv_head);
    float value = 0.0f;
#pragma unroll 8
    for (int r = begin; r < end; ++r, row += args.cache.values.row_bytes)
        value = __fmaf_rn(shared.weights[h][r], load_cache<kType>(row, d), value);
    return value;
}

template <cpu::CacheType kKeys, cpu::CacheType kValues>
__global__ void __launch_bounds__(kThreads) page_kernel(const AttentionArgs args) {
    __shared__ PageShared shared;
    const Place place = place_of(args, static_cast<int>(blockIdx.y), blockIdx.z);
    const int page = static_cast<int>(blockIdx.x) + place.first / kPagePositions;
    if (page > place.last / kPagePositions) return;
    const int begin = max(place.first - page * kPagePositions, 0);
    const int end = min(place.last - page * kPagePositions + 1, kPagePositions);
    load_queries(args, place, shared);
    scores<kKeys>(args, place, page, begin, end, shared);
    soften(place.heads, begin, end, shared);
    for (int i = static_cast<int>(threadIdx.x); i < place.heads * args.value_width; i += kThreads) {
        const int h = i / args.value_width;
        const int d = i % args.value_width;
        float* partial =
            args.partials + ((place.token * args.heads + place.first_head + h) * args.pages + blockIdx.x) *
                                (args.value_width + 2);
        partial[2 + d] = page_value<kValues>(args, place, page, begin, end, h, d, shared);
        if (d == 0) {
            partial[0] = shared.maximum[h];
            partial[1] = shared.sum[h];
        }
    }
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

/// block.x: heads, block.y: tokens; a thread an output.
__global__ void __launch_bounds__(kWidestHead) join_kernel(const AttentionArgs args) {
    __shared__ float maxima[kJoinPages];
    __shared__ float sums[kJoinPages];
    __shared__ Join factors[kJoinPages];
    const int head = static_cast<int>(blockIdx.x);
    const std::int64_t token = blockIdx.y;
    const int d = static_cast<int>(threadIdx.x);
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
        for (int p = d; p < count; p += static_cast<int>(blockDim.x)) {
            maxima[p] = partials[static_cast<std::int64_t>(chunk + p) * pitch];
            sums[p] = partials[static_cast<std::int64_t>(chunk + p) * pitch + 1];
        }
        __syncthreads();
        for (int p = d; p < count; p += static_cast<int>(blockDim.x)) {
            float before = maximum;  // the largest of all pages before p; without meaning for the first
            for (int i = 0; i < p; ++i) before = chunk == 0 && i == 0 ? maxima[0] : fmaxf(before, maxima[i]);
            factors[p] = join(before, maxima[p], fmaxf(before, maxima[p]));
        }
        __syncthreads();
        for (int p = 0; p < count; ++p) {
            const float page =
                d < args.value_width ? partials[static_cast<std::int64_t>(chunk + p) * pitch + 2 + d] : 0.0f;
            if (chunk + p == 0) {
                maximum = maxima[0];
                sum = sums[0];
                value = page;
                continue;
            }
            value = __fmaf_rn(value, factors[p].a, __fmul_rn(page, factors[p].b));
            sum = __fmaf_rn(sum, factors[p].a, __fmul_rn(sums[p], factors[p].b));
            maximum = fmaxf(maximum, maxima[p]);
        }
    }
    if (d / 32 * 32 >= args.value_width) return;
    value = finish(args, head, maximum, sum, value);
    if (d < args.value_width) args.out[token * args.out_stride + head * args.value_width + d] = value;
    if (args.quantised.quants != nullptr)
        store_group(args.quantised, token, (head * args.value_width + d) / 32, value);
}

/// block.x: blocks of heads, block.y: tokens; all pages one after the other.
template <cpu::CacheType kKeys, cpu::CacheType kValues>
__global__ void __launch_bounds__(kThreads) serial_kernel(const AttentionArgs args) {
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
        scores<kKeys>(args, place, page, begin, end, shared);
        soften(place.heads, begin, end, shared);
#pragma unroll
        for (int i = 0; i < kOutputs; ++i) {
            const int index = i * kThreads + static_cast<int>(threadIdx.x);
            if (index >= outputs) break;
            const int h = index / args.value_width;
            const float value =
                page_value<kValues>(args, place, page, begin, end, h, index % args.value_width, shared);
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

template <cpu::CacheType kKeys, cpu::CacheType kValues>
void launch(const AttentionArgs& args, StreamHandle stream) {
    const int group = args.heads / args.kv_heads;
    const auto head_blocks = static_cast<unsigned>(args.kv_heads * ((group + kBlockHeads - 1) / kBlockHeads));
    const auto tokens = static_cast<unsigned>(args.queries.rows);
    if (args.partials == nullptr) {
        serial_kernel<kKeys, kValues><<<dim3(head_blocks, tokens), kThreads, 0, stream>>>(args);
        return check_launch("attention");
    }
    page_kernel<kKeys, kValues>
        <<<dim3(static_cast<unsigned>(args.pages), head_blocks, tokens), kThreads, 0, stream>>>(args);
    check_launch("attention's pages");
    const auto threads = static_cast<unsigned>((args.value_width + 31) / 32 * 32);
    join_kernel<<<dim3(static_cast<unsigned>(args.heads), tokens), threads, 0, stream>>>(args);
    check_launch("attention's join");
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
