#include "kernels/cuda/device/routing.cuh"
#include "kernels/cuda/launch.h"

namespace coterie::cuda {
namespace {

constexpr int kThreads = 128;

/// A block a token.
__global__ void __launch_bounds__(kThreads) route_kernel(const RouteArgs args) {
    __shared__ RouteShared shared;
    await_previous();
    route_token(args, blockIdx.x, own_expert(args), shared);
}

}  // namespace

void route(const RouteArgs& args, StreamHandle stream) {
    launch("route", route_kernel, {dim3(static_cast<unsigned>(args.tokens)), kThreads}, stream, args);
}

}  // namespace coterie::cuda
