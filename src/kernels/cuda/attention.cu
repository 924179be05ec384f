#include "kernels/cuda/attention.h"
#include "kernels/cuda/device/attention_page.cuh"

// A block for each page (device/attention_page.cuh), or one that goes through all pages of a token.
namespace coterie::cuda {
namespace {

struct JoinShared {
    float maxima[kJoinPages];
    float sums[kJoinPages];
    Join factors[kJoinPages];
};

/// Joins a head's pages; thread d an output, `threads` of them, whole warps. All threads of the block call
/// it.
__device__ void join_head(const AttentionArgs& args, std::int64_t token, int head, int d, int threads,
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
#pragma unroll 8
            for (int i = 0; i < p; ++i)
                before = chunk == 0 && i == 0 ? shared.maxima[0] : fmaxf(before, shared.maxima[i]);
            shared.factors[p] = join(before, shared.maxima[p], fmaxf(before, shared.maxima[p]));
        }
        __syncthreads();
#pragma unroll 16
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
    await_previous(args);
    __shared__ JoinShared shared;
    join_head(args, blockIdx.y, static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x),
              static_cast<int>(blockDim.x), shared);
}

/// block.x: pages, block.y: blocks of heads, block.z: tokens.
template <cpu::CacheType kKeys, cpu::CacheType kValues>
__global__ void __launch_bounds__(kThreads) page_kernel(const AttentionArgs args, const RowStaging staging) {
    await_previous();
    extern __shared__ uint4 staged_rows[];
    __shared__ PageShared shared;
    __shared__ FewShared few;
    const Place place = place_of(args, static_cast<int>(blockIdx.y), blockIdx.z);
    const BlockPage page = block_page(place, static_cast<int>(blockIdx.x));
    if (static_cast<int>(blockIdx.x) >= page.count) return;
    auto* shared_rows = reinterpret_cast<std::byte*>(staged_rows);
    const std::uint32_t number = place.pages[page.number];
    const HeadRows keys = staged(staging, rows_in_page(args.cache, args.cache.keys, number, place.kv_head),
                                 staging.key_bytes, page.begin, page.end, shared_rows);
    const HeadRows values =
        staged(staging, rows_in_page(args.cache, args.cache.values, number, place.kv_head),
               staging.value_bytes, page.begin, page.end, shared_rows + staging.key_bytes * kPagePositions);
    load_queries(args, place, shared);
    await_copies();
    __syncthreads();
    attend_page<kKeys, kValues>(args, place, page, keys, values, shared, few);
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
                page_value<kValues, 16>(page_rows, begin, end, h, index % args.value_width, shared);
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
        return launch("attention", serial_kernel<kKeys, kValues>, {dim3(head_blocks, tokens), kThreads},
                      stream, args);
    }
    const RowStaging staging = row_staging(args);
    const std::uint32_t bytes = (staging.key_bytes + staging.value_bytes) * kPagePositions;
    AttentionArgs paged = args;
    if (args.pages > kFewPages) paged.arrivals = nullptr;
    launch("attention's pages", page_kernel<kKeys, kValues>,
           {dim3(static_cast<unsigned>(args.pages), head_blocks, tokens), kThreads, bytes}, stream, paged,
           staging);
    if (paged.arrivals != nullptr) return;
    join_pages(args, stream);
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

void join_pages(const AttentionArgs& args, StreamHandle stream) {
    const dim3 grid(static_cast<unsigned>(args.heads), static_cast<unsigned>(args.queries.rows));
    const auto threads = static_cast<unsigned>((args.value_width + 31) / 32 * 32);
    launch("attention's join", join_kernel, {grid, threads}, stream, args);
}

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
