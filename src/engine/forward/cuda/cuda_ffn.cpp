#include <algorithm>
#include <array>
#include <chrono>

#include "engine/forward/cuda/cuda_ops.h"

namespace coterie::engine {
namespace {

using models::Matrix;
using models::Value;

/// Rows of one launch of an operation whose grid counts them in its second dimension.
constexpr std::int64_t kRowsOfLaunch = 65535;

constexpr int kTimedRounds = 7;

bool quantised(DataType type) { return traits(type).uses_quantised_activation; }

std::int64_t padded(std::int64_t width) { return activation_groups(width) * kGroupValues; }

cuda::Gate gate_of(models::FfnActivation activation) {
    return activation == models::FfnActivation::SwiGlu ? cuda::Gate::SwiGlu : cuda::Gate::SwiGluOai;
}

}  // namespace

void CudaOps::run_ffn(const models::DenseFfn& ffn, models::FfnActivation activation, Buffer& x, float* out,
                      std::int64_t out_stride) {
    Buffer hidden = dense_hidden_;
    hidden.width = ffn.down.columns;
    hidden.stride = padded(hidden.width);
    hidden.quantised.groups = stored_groups(hidden.width);
    const std::array<const Matrix*, 2> matrices{&ffn.gate, &ffn.up};
    const std::array<float*, 2> outs{hidden.data, dense_up_};
    const std::array<std::int64_t, 2> strides{hidden.stride, hidden.stride};
    multiply(x, {matrices, outs, strides});
    cuda::gate({.gate = rows(hidden),
                .up = dense_up_,
                .activation = gate_of(activation),
                .used = nullptr,
                .quantised = hidden.quantised},
               handle());
    hidden.quantised_now = true;
    const std::array<const Matrix*, 1> down{&ffn.down};
    const std::array<float*, 1> down_out{out};
    const std::array<std::int64_t, 1> down_stride{out_stride};
    multiply(hidden, {down, down_out, down_stride});
}

void CudaOps::dense_ffn(const models::DenseFfn& ffn, Value x, Value out) {
    flush();
    settle(x);
    Buffer& to = buffer(out);
    run_ffn(ffn, models::FfnActivation::SwiGlu, buffer(x), to.data, to.stride);
    to.quantised_now = false;
}

bool CudaOps::router_norms(const models::MoeFfn& ffn, Value x) const {
    return is_window() && !before_experts_ && norm_is_pending_for(x) && ffn.router.type == DataType::F32 &&
           cuda::routes_normed(static_cast<std::int32_t>(ffn.router.rows),
                               static_cast<std::int32_t>(ffn.router.columns));
}

/// With the pending norm of x where the router norms.
void CudaOps::run_router(int layer, const models::MoeFfn& ffn, Buffer& x, bool normed) {
    cuda::RouterArgs router;
    if (normed) {
        router.input = take_norm();
        router.weights = reinterpret_cast<const float*>(parts_.weights.at(ffn.router));
        router.scale = ffn.router.scale;
        router.bias = parts_.weights.at(ffn.router.bias);
        router.logits = router_logits_;
        router.arrivals = router_arrivals_;
    } else {
        const std::array<const Matrix*, 1> matrix{&ffn.router};
        const std::array<float*, 1> out{router_logits_};
        const std::array<std::int64_t, 1> stride{router_stride_};
        multiply(x, {matrix, out, stride});
    }
    cuda::RouteArgs args;
    args.routing = ffn.routing;
    args.layer = layer;
    args.tokens = static_cast<std::int32_t>(view_.tokens);
    args.max_tokens = static_cast<std::int32_t>(max_tokens_);
    args.logits = router_logits_;
    args.logits_stride = router_stride_;
    args.selection_bias = parts_.weights.at(ffn.selection_bias);
    args.residents = parts_.residents.layer(layer);
    args.experts = chosen_;
    args.weights = weights_;
    args.slots = slots_;
    args.link = parts_.link.share(layer, view_.tokens);
    args.x = inputs(x, quantised(ffn.gate.type) || quantised(ffn.up.type));
    args.columns = static_cast<std::int32_t>(x.width);
    args.counters = counters();
    args.mailbox = parts_.mailbox.view();
    normed ? cuda::route_normed(router, args, handle()) : cuda::route(args, handle());
}

cuda::SortedPairs CudaOps::sort_pairs(const cpu::Routing& routing) {
    const std::int64_t pairs = view_.tokens * routing.used;
    if (view_.tokens <= kWindowTokens || pairs < 2 * routing.experts) return {};
    cuda::SortedPairs sorted = sorted_;
    sorted.tile_pairs = cuda::SortedPairs::good_tile(pairs, routing.experts);
    sorted.most_tiles = static_cast<std::int32_t>(
        cuda::SortedPairs::most_tiles_of(pairs, routing.experts, sorted.tile_pairs));
    cuda::sort_pairs({.slots = slots_,
                      .experts = chosen_,
                      .pairs = static_cast<std::int32_t>(pairs),
                      .expert_count = static_cast<std::int32_t>(routing.experts),
                      .out = sorted},
                     handle());
    return sorted;
}

void CudaOps::gate_experts(const models::MoeFfn& ffn, const Buffer& hidden, std::int64_t pairs) {
    const float* up = hidden.data + pairs * hidden.stride;
    for (std::int64_t first = 0; first < pairs; first += kRowsOfLaunch) {
        const auto count = static_cast<std::int32_t>(std::min(kRowsOfLaunch, pairs - first));
        cuda::gate({.gate = {hidden.data + first * hidden.stride, hidden.stride, count,
                             static_cast<std::int32_t>(hidden.width)},
                    .up = up + first * hidden.stride,
                    .activation = gate_of(ffn.activation),
                    .used = slots_ + first,
                    .quantised = hidden.quantised.from(first),
                    .keeps_values = combines(ffn) || !quantised(ffn.down.type)},
                   handle());
    }
}

template <typename Args>
void CudaOps::set_matrix(const models::ExpertMatrix& weight, std::uint64_t offset, int i, Args& args) const {
    args.offsets[i] = offset;
    args.scales[i] = parts_.weights.at(weight.scales);
    args.biases[i] = parts_.weights.at(weight.bias);
    args.rows = static_cast<std::int32_t>(weight.rows);
    args.columns = static_cast<std::int32_t>(weight.columns);
    args.row_bytes = weight.row_bytes;
}

/// In one kernel.
void CudaOps::run_gate_up(int layer, const models::MoeFfn& ffn, Buffer& x, const Buffer& hidden) {
    cuda::ExpertGateArgs args;
    args.slots = slots_;
    args.experts = chosen_;
    set_matrix(ffn.gate, 0, 0, args);
    set_matrix(ffn.up, static_cast<std::uint64_t>(ffn.gate.bytes_per_expert()), 1, args);
    args.hosts[0] = parts_.link.addresses(layer).gate;
    args.hosts[1] = parts_.link.addresses(layer).up;
    args.pairs = static_cast<std::int32_t>(view_.tokens * ffn.routing.used);
    args.pairs_per_input = static_cast<std::int32_t>(ffn.routing.used);
    args.activation = gate_of(ffn.activation);
    args.x = inputs(x, true);
    args.out = hidden.data;
    args.out_stride = hidden.stride;
    cuda::matmul_kernels(ffn.gate.type)->expert_gate_up(args, handle());
}

/// One after the other, for sorted pairs and for types that differ or have no kernel for both.
void CudaOps::run_gate_and_up(int layer, const models::MoeFfn& ffn, Buffer& x, const Buffer& hidden,
                              const cuda::SortedPairs& sorted) {
    const auto pairs = static_cast<std::int32_t>(view_.tokens * ffn.routing.used);
    float* up = hidden.data + pairs * hidden.stride;
    const auto multiply_one = [&](const models::ExpertMatrix& weight, std::uint64_t offset,
                                  const std::uint64_t* host, float* out) {
        cuda::ExpertMatmulArgs args;
        args.slots = slots_;
        args.experts = chosen_;
        args.pairs = pairs;
        args.pairs_per_input = static_cast<std::int32_t>(ffn.routing.used);
        set_matrix(weight, offset, 0, args);
        args.hosts[0] = host;
        args.x = inputs(x, quantised(weight.type));
        args.out = out;
        args.out_stride = hidden.stride;
        args.sorted = sorted;
        cuda::matmul_kernels(weight.type)->expert_matmul(args, handle());
    };
    const LinkPath::Addresses hosts = parts_.link.addresses(layer);
    multiply_one(ffn.gate, 0, hosts.gate, hidden.data);
    multiply_one(ffn.up, static_cast<std::uint64_t>(ffn.gate.bytes_per_expert()), hosts.up, up);
    gate_experts(ffn, hidden, pairs);
}

void CudaOps::run_experts(int layer, const models::MoeFfn& ffn, Buffer& x, const cuda::CombineArgs* combine) {
    const auto pairs = static_cast<std::int32_t>(view_.tokens * ffn.routing.used);
    const cuda::SortedPairs sorted = sort_pairs(ffn.routing);
    const auto down_offset =
        static_cast<std::uint64_t>(ffn.gate.bytes_per_expert() + ffn.up.bytes_per_expert());
    Buffer hidden = expert_hidden_;
    hidden.width = ffn.down.columns;
    hidden.stride = padded(hidden.width);
    hidden.quantised.groups = stored_groups(hidden.width);
    const bool fused = combine != nullptr && sorted.order == nullptr && ffn.gate.type == ffn.up.type &&
                       cuda::matmul_kernels(ffn.gate.type)->expert_gate_up != nullptr;
    if (fused) {
        run_gate_up(layer, ffn, x, hidden);
    } else {
        run_gate_and_up(layer, ffn, x, hidden, sorted);
    }
    cuda::ExpertMatmulArgs down;
    down.sorted = sorted;
    down.slots = slots_;
    down.experts = chosen_;
    down.pairs = pairs;
    down.slots_known = fused;
    set_matrix(ffn.down, down_offset, 0, down);
    down.hosts[0] = parts_.link.addresses(layer).down;
    down.x = {hidden.data, hidden.stride, hidden.quantised};
    if (combine != nullptr)
        return cuda::matmul_kernels(ffn.down.type)->expert_combine(down, *combine, handle());
    down.out = expert_rows_;
    down.out_stride = expert_row_stride_;
    cuda::matmul_kernels(ffn.down.type)->expert_matmul(down, handle());
}

double CudaOps::seconds_per_linked_expert(int layer, const StepBlock& block, FunctionRef<void()> meanwhile) {
    const models::MoeFfn& ffn = *parts_.list.experts[static_cast<std::size_t>(layer)];
    const std::int64_t used = ffn.routing.used;
    const auto pairs = static_cast<std::size_t>(used);
    const auto slots = parts_.device.allocate_pinned(pairs * sizeof(std::uint64_t));
    const auto chosen = parts_.device.allocate_pinned(pairs * sizeof(std::int32_t));
    std::fill_n(reinterpret_cast<std::uint64_t*>(slots->span().data()), pairs, cuda::kOnHost);
    parts_.stream.copy_to_device(device_address(slots_), slots->span());
    begin({&block, 1, 0, false, 1});
    Buffer& x = buffer(parts_.model.residual);
    const cuda::CombineArgs combine = combine_args(layer, ffn, x);
    std::vector<double> seconds;
    for (std::int64_t round = 0; round < kTimedRounds; ++round) {
        for (std::int64_t i = 0; i < used; ++i)  // others each round: none is in a cache
            reinterpret_cast<std::int32_t*>(chosen->span().data())[i] =
                static_cast<std::int32_t>((round * used + i) % ffn.routing.experts);
        parts_.stream.copy_to_device(device_address(chosen_), chosen->span());
        parts_.stream.synchronise();
        const auto start = std::chrono::steady_clock::now();
        run_experts(layer, ffn, x, combines(ffn) ? &combine : nullptr);
        meanwhile();
        parts_.stream.synchronise();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        seconds.push_back(took.count() / static_cast<double>(used));
    }
    std::nth_element(seconds.begin(), seconds.begin() + kTimedRounds / 2, seconds.end());
    return seconds[kTimedRounds / 2];
}

void CudaOps::run_shared(const models::MoeFfn& ffn, Buffer& x, std::int64_t out_stride) {
    if (ffn.shared) run_ffn(*ffn.shared, ffn.activation, x, shared_rows_, out_stride);
    if (!ffn.shared_gate) return;
    const std::array<const Matrix*, 1> gate{&*ffn.shared_gate};
    const std::array<float*, 1> out{shared_gates_};
    const std::array<std::int64_t, 1> stride{1};
    multiply(x, {gate, out, stride});
}

/// Where a token's experts are added up, besides what shared ones add.
cuda::CombineArgs CudaOps::combine_args(int layer, const models::MoeFfn& ffn, const Buffer& out) const {
    return {.layer = layer,
            .used = static_cast<std::int32_t>(ffn.routing.used),
            .out = rows(out),
            .rows = expert_rows_,
            .stride = expert_row_stride_,
            .slots = slots_,
            .weights = weights_,
            .counters = counters(),
            .mailbox = parts_.mailbox.view()};
}

bool CudaOps::combines(const models::MoeFfn& ffn) const {
    return is_window() && cuda::takes_combined(ffn.down.type, ffn.routing.used, ffn.down.columns);
}

void CudaOps::moe_ffn(int layer, const models::MoeFfn& ffn, Value x, Value out) {
    const bool normed = router_norms(ffn, x);
    if (!normed) flush();
    settle(x);
    Buffer& from = buffer(x);
    Buffer& to = buffer(out);
    cuda::CombineArgs combine = combine_args(layer, ffn, to);
    combine.shared = ffn.shared ? shared_rows_ : nullptr;
    combine.shared_gate = ffn.shared_gate ? shared_gates_ : nullptr;
    const bool together = combines(ffn);
    if (before_experts_) before_experts_(layer);
    run_router(layer, ffn, from, normed);
    if (together) run_shared(ffn, from, to.stride);
    run_experts(layer, ffn, from, together ? &combine : nullptr);
    if (after_experts_) after_experts_(layer);
    if (!together) {
        run_shared(ffn, from, to.stride);
        cuda::combine(combine, handle());
    }
    to.quantised_now = false;
}

}  // namespace coterie::engine
