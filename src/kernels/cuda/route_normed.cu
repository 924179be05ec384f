#include <algorithm>

#include "kernels/cuda/device/arrival.cuh"
#include "kernels/cuda/device/norm.cuh"
#include "kernels/cuda/device/routing.cuh"
#include "kernels/cuda/device/staging.cuh"
#include "kernels/cuda/launch.h"

// Norm, router and routing of a step's few tokens. Every block normalises its token for itself and computes a
// few logits; the last one to be done with them routes the token.
namespace coterie::cuda {
namespace {

constexpr int kProductWarps = 4;  ///< of a block, a row each
constexpr int kStoringWarps = 2;  ///< which store the norm for later kernels
constexpr int kThreads = 32 * (kProductWarps + kStoringWarps);
constexpr int kGroupsOfBlock = 4 * kStoringWarps;  ///< to store, at most

/// Parts of a block's shared memory: rows of the product, sums and the norm's weights.
struct RouterStaging {
    std::uint32_t warp_bytes = 0;
    std::uint32_t values_bytes = 0;
    std::uint32_t weights_bytes = 0;
    std::size_t bytes() const {
        return std::size_t{kProductWarps} * warp_bytes + values_bytes + weights_bytes;
    }
};

RouterStaging staging_of(std::int32_t width) {
    const std::uint32_t row = staging_units(static_cast<std::uint64_t>(width) * sizeof(float));
    return {row + kStagingUnit, row, row};
}

/// block.x: strips of rows, and as many more as the norm's groups want; block.y: tokens.
__global__ void __launch_bounds__(kThreads)
    route_normed_kernel(const RouterArgs router, const RouteArgs args, const RouterStaging staging) {
    extern __shared__ uint4 shared_units[];
    __shared__ RouteShared shared;
    auto* memory = reinterpret_cast<std::byte*>(shared_units);
    auto* sums = reinterpret_cast<float*>(memory);
    auto* norm = reinterpret_cast<float*>(memory + staging.values_bytes);
    std::byte* rows = memory + staging.values_bytes + staging.weights_bytes;
    const int warp = warp_index();
    const std::int64_t token = blockIdx.y;
    const int width = router.input.width;
    const int row = static_cast<int>(blockIdx.x) * kProductWarps + warp;
    const bool multiplies = warp < kProductWarps && row < args.routing.experts;
    const float* weights = nullptr;
    if (multiplies) {
        const auto* from =
            reinterpret_cast<const std::uint8_t*>(router.weights + static_cast<std::int64_t>(row) * width);
        weights = reinterpret_cast<const float*>(
            stage_rows(rows + warp * staging.warp_bytes, from, static_cast<std::uint32_t>(width) * 4, 1)
                .first);
    }
    copy_units(reinterpret_cast<std::byte*>(norm), reinterpret_cast<const std::byte*>(router.input.weight),
               staging.weights_bytes, {threadIdx.x, kThreads});
    const OwnExpert own = own_expert(args);
    await_previous(router, args, staging);
    load_sums<3>(router.input, token, sums);
    await_copies();
    const float factor = block_norm_factor(router.input, sums);
    if (multiplies) {
        float logit = warp_dot<8>(
            width, [=](int i) { return weights[i]; },
            [=](int i) { return normalised(sums[i], factor, norm[i]); });
        logit = __fmul_rn(logit, router.scale);
        if (router.bias != nullptr) logit = __fadd_rn(logit, router.bias[row]);
        if (lane_index() == 0) router.logits[token * args.logits_stride + row] = logit;
    }
    if (warp >= kProductWarps) {
        const int first = static_cast<int>(blockIdx.x) * kStoringWarps + warp - kProductWarps;
        for (int g = first; 32 * g < width; g += static_cast<int>(gridDim.x) * kStoringWarps)
            store_normed_group(router.input, token, g, sums, norm, factor);
    }
    if (arrives_last(router.arrivals[token], gridDim.x)) route_token(args, token, own, shared);
}

}  // namespace

bool routes_normed(std::int32_t experts, std::int32_t width) {
    return experts <= kMostExperts && width <= kLongestNorm &&
           staging_of(width).bytes() + sizeof(RouteShared) <= most_shared_bytes();
}

void route_normed(const RouterArgs& router, const RouteArgs& args, StreamHandle stream) {
    const RouterStaging staging = staging_of(router.input.width);
    const auto strips = static_cast<unsigned>((args.routing.experts + kProductWarps - 1) / kProductWarps);
    const auto groups = static_cast<unsigned>((router.input.width + 31) / 32);
    const dim3 grid(std::max(strips, (groups + kGroupsOfBlock - 1) / kGroupsOfBlock),
                    static_cast<unsigned>(args.tokens));
    RouteArgs routed = args;
    routed.logits = router.logits;
    launch("route_normed", route_normed_kernel, {grid, kThreads, staging.bytes()}, stream, router, routed,
           staging);
}

}  // namespace coterie::cuda
