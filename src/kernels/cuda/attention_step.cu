#include "kernels/cuda/attention.h"
#include "kernels/cuda/device/attention_head.cuh"
#include "kernels/cuda/device/attention_page.cuh"

// A step's only token: its queries, key and value are prepared by the blocks that read them, and older rows
// are asked for before the kernel ahead has ended.
namespace coterie::cuda {
namespace {

constexpr int kManyThreads = 2 * kThreads;  ///< where all blocks can run at once

struct HeadScratch {
    float key[kWidestHead];
};

/// What heads are prepared with besides themselves. It is known ahead, so it is here before they are.
struct HeadTables {
    float query_norm[kWidestHead];
    float key_norm[kWidestHead];
    float cosines[kWidestHead / 2];
    float sines[kWidestHead / 2];
};

/// Fills the tables, by all threads, and gives the inputs that point to them.
__device__ AttentionInputs with_tables(const AttentionInputs& inputs, HeadTables& tables) {
    AttentionInputs near = inputs;
    const int pairs = max(inputs.query_pairs, inputs.key_pairs);
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < inputs.key_width; i += block_threads()) {
        if (inputs.query_norm != nullptr) tables.query_norm[i] = inputs.query_norm[i];
        if (inputs.key_norm != nullptr) tables.key_norm[i] = inputs.key_norm[i];
        if (i >= pairs) continue;
        tables.cosines[i] = inputs.cosines[i];
        tables.sines[i] = inputs.sines[i];
    }
    if (inputs.query_norm != nullptr) near.query_norm = tables.query_norm;
    if (inputs.key_norm != nullptr) near.key_norm = tables.key_norm;
    near.cosines = tables.cosines;
    near.sines = tables.sines;
    __syncthreads();
    return near;
}

/// The new key or value goes to a block's staged rows and, by the first block of its key-value head, to the
/// cache.
template <cpu::CacheType kType, typename Value>
__device__ void store_new(std::byte* staged, std::byte* cached, int width, Value value) {
    store_cache<kType>(staged, width, value);
    if (cached != nullptr) store_cache<kType>(cached, width, value);
}

template <cpu::CacheType kKeys, cpu::CacheType kValues>
__device__ void prepare_new_row(const AttentionArgs& args, const AttentionInputs& inputs, const Place& place,
                                int row, std::uint32_t page, const RowStaging& staging,
                                std::byte* shared_rows, HeadScratch& scratch) {
    const bool stores = place.first_head == place.kv_head * (args.heads / args.kv_heads);
    const auto cached = [&](const PagePartView& part) {
        return stores ? cache_row(args.cache, part, page, row, place.kv_head) : nullptr;
    };
    if (warp_index() == kBlockHeads) {
        prepare_head(inputs.keys.data + place.kv_head * args.key_width, inputs, inputs.key_norm,
                     inputs.key_epsilon, inputs.key_pairs, 0, scratch.key);
        store_new<kKeys>(shared_rows + row * staging.key_bytes, cached(args.cache.keys), args.key_width,
                         [&](int i) { return scratch.key[i]; });
    }
    if (warp_index() == kBlockHeads + 1) {
        const float* value = inputs.values.data + place.kv_head * args.value_width;
        store_new<kValues>(shared_rows + kPagePositions * staging.key_bytes + row * staging.value_bytes,
                           cached(args.cache.values), args.value_width, [&](int i) { return value[i]; });
    }
}

/// block.x: pages, block.y: blocks of heads.
template <cpu::CacheType kKeys, cpu::CacheType kValues>
__global__ void __launch_bounds__(kManyThreads, 2)
    step_kernel(const AttentionArgs args, const AttentionInputs inputs, const RowStaging staging) {
    extern __shared__ uint4 staged_rows[];
    __shared__ PageShared shared;
    __shared__ FewShared few;
    __shared__ HeadScratch scratch;
    __shared__ HeadTables tables;
    const Place place = place_of(args, static_cast<int>(blockIdx.y), 0);
    const BlockPage page = block_page(place, static_cast<int>(blockIdx.x));
    if (static_cast<int>(blockIdx.x) >= page.count) return;  // others await
    const bool holds_new = page.number == place.last / kPagePositions;
    const int old_end = holds_new ? page.end - 1 : page.end;
    auto* shared_rows = reinterpret_cast<std::byte*>(staged_rows);
    const std::uint32_t number = place.pages[page.number];
    const HeadRows keys = staged(staging, rows_in_page(args.cache, args.cache.keys, number, place.kv_head),
                                 staging.key_bytes, page.begin, old_end, shared_rows);
    const HeadRows values =
        staged(staging, rows_in_page(args.cache, args.cache.values, number, place.kv_head),
               staging.value_bytes, page.begin, old_end, shared_rows + staging.key_bytes * kPagePositions);
    const AttentionInputs near = with_tables(inputs, tables);
    await_previous(args, inputs, staging);
    if (warp_index() < place.heads) {
        const int head = place.first_head + warp_index();
        prepare_head(inputs.queries.data + head * args.key_width, near, near.query_norm, inputs.query_epsilon,
                     inputs.query_pairs, 0, shared.queries[warp_index()]);
    }
    if (holds_new)
        prepare_new_row<kKeys, kValues>(args, near, place, old_end, number, staging, shared_rows, scratch);
    await_copies();
    __syncthreads();
    attend_page<kKeys, kValues>(args, place, page, keys, values, shared, few);
}

template <cpu::CacheType kKeys, cpu::CacheType kValues>
void launch(const AttentionArgs& args, const AttentionInputs& inputs, const RowStaging& staging,
            StreamHandle stream) {
    const int group = args.heads / args.kv_heads;
    const auto head_blocks = static_cast<unsigned>(args.kv_heads * ((group + kBlockHeads - 1) / kBlockHeads));
    const std::uint32_t bytes = (staging.key_bytes + staging.value_bytes) * kPagePositions;
    AttentionArgs paged = args;
    if (args.pages > kFewPages) paged.arrivals = nullptr;
    const dim3 grid(static_cast<unsigned>(args.pages), head_blocks);
    const bool at_once = grid.x * grid.y <= 2 * static_cast<unsigned>(multiprocessors());
    launch("attention of a step", step_kernel<kKeys, kValues>,
           {grid, static_cast<unsigned>(at_once ? kManyThreads : kThreads), bytes}, stream, paged, inputs,
           staging);
    if (paged.arrivals == nullptr) join_pages(args, stream);
}

template <cpu::CacheType kKeys>
void launch_keys(const AttentionArgs& args, const AttentionInputs& inputs, const RowStaging& staging,
                 StreamHandle stream) {
    switch (args.cache.values.type) {
        case cpu::CacheType::F32:
            return launch<kKeys, cpu::CacheType::F32>(args, inputs, staging, stream);
        case cpu::CacheType::F16:
            return launch<kKeys, cpu::CacheType::F16>(args, inputs, staging, stream);
        case cpu::CacheType::Q8_0:
            return launch<kKeys, cpu::CacheType::Q8_0>(args, inputs, staging, stream);
    }
}

}  // namespace

void attention_of_step(const AttentionInputs& inputs, const AttentionArgs& args, StreamHandle stream) {
    const RowStaging staging = row_staging(args);
    if (args.queries.rows != 1 || args.partials == nullptr || staging.key_bytes == 0) {
        store_attention_inputs(inputs, stream);
        return attention(args, stream);
    }
    switch (args.cache.keys.type) {
        case cpu::CacheType::F32:
            return launch_keys<cpu::CacheType::F32>(args, inputs, staging, stream);
        case cpu::CacheType::F16:
            return launch_keys<cpu::CacheType::F16>(args, inputs, staging, stream);
        case cpu::CacheType::Q8_0:
            return launch_keys<cpu::CacheType::Q8_0>(args, inputs, staging, stream);
    }
}

}  // namespace coterie::cuda
