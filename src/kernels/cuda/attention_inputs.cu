#include "kernels/cuda/attention.h"
#include "kernels/cuda/device/attention_head.cuh"
#include "kernels/cuda/device/cache_row.cuh"
#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/launch.h"

namespace coterie::cuda {
namespace {

constexpr int kHeadsPerBlock = 4;

/// A warp a head: queries first, then keys, then values.
__global__ void __launch_bounds__(32 * kHeadsPerBlock) inputs_kernel(const AttentionInputs args) {
    await_previous();
    __shared__ float heads[kHeadsPerBlock][kWidestHead];
    const int index = static_cast<int>(blockIdx.x) * kHeadsPerBlock + warp_index();
    const std::int64_t token = blockIdx.y;
    float* head = heads[warp_index()];
    if (index < args.heads) {
        float* query = args.queries.data + token * args.queries.stride + index * args.key_width;
        prepare_head(query, args, args.query_norm, args.query_epsilon, args.query_pairs, token, head);
        for (int i = lane_index(); i < args.key_width; i += 32) query[i] = head[i];
        return;
    }
    const int kv = (index - args.heads) % args.kv_heads;
    if (index >= args.heads + 2 * args.kv_heads) return;
    const std::int32_t position = args.places.positions[token];
    const std::uint32_t page =
        args.places.pages[args.places.sequences[token] * args.places.page_stride + position / 64];
    if (index < args.heads + args.kv_heads) {
        const float* key = args.keys.data + token * args.keys.stride + kv * args.key_width;
        prepare_head(key, args, args.key_norm, args.key_epsilon, args.key_pairs, token, head);
        store_cache(args.cache.keys.type, cache_row(args.cache, args.cache.keys, page, position % 64, kv),
                    args.key_width, [&](int i) { return head[i]; });
        return;
    }
    const float* value = args.values.data + token * args.values.stride + kv * args.value_width;
    store_cache(args.cache.values.type, cache_row(args.cache, args.cache.values, page, position % 64, kv),
                args.value_width, [&](int i) { return value[i]; });
}

}  // namespace

void store_attention_inputs(const AttentionInputs& args, StreamHandle stream) {
    const int heads = args.heads + 2 * args.kv_heads;
    const dim3 grid(static_cast<unsigned>((heads + kHeadsPerBlock - 1) / kHeadsPerBlock),
                    static_cast<unsigned>(args.queries.rows));
    launch("store_attention_inputs", inputs_kernel, {grid, 32 * kHeadsPerBlock}, stream, args);
}

}  // namespace coterie::cuda
