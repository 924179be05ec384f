#include "engine/forward/cuda/cuda_ops.h"

#include <algorithm>

#include "base/error.h"

namespace coterie::engine {
namespace {

using models::Matrix;
using models::Value;
using models::Vector;

/// Rows of attention's partial results that decode windows may need at once: (token, head, page).
constexpr std::int64_t kPartialRows = std::int64_t{1} << 17;
constexpr std::int64_t kDecodeTokens = 8;
/// Rows of one launch of an operation whose grid counts them in its second dimension.
constexpr std::int64_t kRowsOfLaunch = 65535;

bool quantised(DataType type) { return traits(type).uses_quantised_activation; }

std::int64_t padded(std::int64_t width) { return activation_groups(width) * kGroupValues; }

[[noreturn]] void fail_unsupported() {
    fail(ErrorCode::Internal, "an operation that GPUs do not have was not refused");
}

cuda::Gate gate_of(models::FfnActivation activation) {
    return activation == models::FfnActivation::SwiGlu ? cuda::Gate::SwiGlu : cuda::Gate::SwiGluOai;
}

std::int64_t most_used(const WeightList& list) {
    std::int64_t used = 0;
    for (const models::MoeFfn* ffn : list.experts)
        used = std::max(used, ffn != nullptr ? ffn->routing.used : 0);
    return used;
}

std::int64_t most_experts(const WeightList& list) {
    std::int64_t experts = 0;
    for (const models::MoeFfn* ffn : list.experts)
        experts = std::max(experts, ffn != nullptr ? ffn->routing.experts : 0);
    return experts;
}

}  // namespace

CudaOps::CudaOps(const Parts& parts, DeviceArena& arena, std::int64_t max_tokens, std::int64_t logits_rows,
                 std::int64_t context)
    : parts_(parts), max_tokens_(max_tokens), logits_rows_(logits_rows) {
    const models::Model& model = parts.model;
    const WeightList& list = parts.list;
    for (const std::int64_t width : model.workspace.widths())
        values_.push_back(take_buffer(arena, max_tokens, width));
    head_work_.resize(values_.size());
    if (list.widest_dense > 0) {
        dense_hidden_ = take_buffer(arena, max_tokens, list.widest_dense);
        dense_up_ = arena.take<float>(max_tokens * dense_hidden_.stride);
    }
    const std::int64_t pairs = max_tokens * most_used(list);
    if (pairs > 0) {
        expert_hidden_ = take_buffer(arena, 2 * pairs, list.widest_expert);
        expert_row_stride_ = padded(model.config.embedding);
        expert_rows_ = arena.take<float>(pairs * expert_row_stride_);
        shared_rows_ = arena.take<float>(max_tokens * expert_row_stride_);
        shared_gates_ = arena.take<float>(max_tokens);
        router_stride_ = padded(most_experts(list));
        router_logits_ = arena.take<float>(max_tokens * router_stride_);
        chosen_ = arena.take<std::int32_t>(pairs);
        weights_ = arena.take<float>(pairs);
        slots_ = arena.take<std::uint64_t>(pairs);
        take_sorted(arena, pairs, most_experts(list));
    }
    const auto layers = static_cast<std::int64_t>(list.experts.size());
    missing_ = arena.take<std::uint32_t>(2 * layers);
    routed_ = missing_ + layers;
    if (pairs > 0) {
        routed_experts_ = arena.take<std::int32_t>(layers * pairs);
        routed_weights_ = arena.take<float>(layers * pairs);
    }
    const std::int64_t rows = std::min(kPartialRows, kDecodeTokens * list.most_heads * pages_for(context));
    partial_floats_ = rows * (list.widest_value + 2);
    partials_ = arena.take<float>(partial_floats_);
    arrivals_ = arena.take<std::uint32_t>(kDecodeTokens * list.most_heads);
    parts_.stream.fill(device_address(arrivals_),
                       static_cast<std::uint64_t>(kDecodeTokens * list.most_heads) * 4, std::byte{0});
    gathered_ = take_buffer(arena, logits_rows, model.config.embedding);
    logits_ = arena.take<float>(logits_rows * model.config.vocabulary);
}

CudaOps::Buffer CudaOps::take_buffer(DeviceArena& arena, std::int64_t rows, std::int64_t width) const {
    Buffer result;
    result.width = width;
    result.stride = padded(width);
    result.data = arena.take<float>(rows * result.stride);
    const std::int64_t groups = stored_groups(width);
    auto* memory = arena.take<std::byte>(cuda::ActivationBuffer::bytes(rows, groups));
    result.quantised = cuda::ActivationBuffer::in(memory, rows, groups);
    return result;
}

/// Room for tiles of either width.
void CudaOps::take_sorted(DeviceArena& arena, std::int64_t pairs, std::int64_t experts) {
    const auto tiles = [=](std::int64_t width) {
        return cuda::SortedPairs::most_tiles_of(pairs, experts, width);
    };
    sorted_.order = arena.take<std::int32_t>(pairs);
    sorted_.tiles = arena.take<cuda::PairTile>(tiles(cuda::SortedPairs::kNarrow));
    sorted_.tile_count = arena.take<std::int32_t>(1);
}

void CudaOps::set_state(const StateLayout& layout, std::byte* pages) {
    layout_ = &layout;
    pages_ = pages;
}

void CudaOps::begin(const StepView& view) {
    view_ = view;
    pending_add_.reset();
    std::fill(head_work_.begin(), head_work_.end(), HeadWork{});
}

void CudaOps::queue_begin() {
    const auto layers = static_cast<std::uint64_t>(parts_.list.experts.size());
    parts_.stream.fill(device_address(missing_), 2 * layers * sizeof(std::uint32_t), std::byte{0});
}

void CudaOps::queue_finish() {
    const std::int64_t used = most_used(parts_.list);
    cuda::finish_step({.layers = static_cast<std::int32_t>(parts_.list.experts.size()),
                       .pairs = static_cast<std::int32_t>(view_.tokens * used),
                       .layer_pairs = max_tokens_ * used,
                       .counters = counters(),
                       .mailbox = parts_.mailbox.view()},
                      handle());
}

/// The step's block has brought the rows already.
void CudaOps::embed(const Matrix&, Value out) { buffer(out).quantised_now = false; }

void CudaOps::settle(Value value) {
    HeadWork& work = head_work(value);
    Buffer& x = buffer(value);
    if (work.norm != nullptr) {
        cuda::rms_norm({.x = rows(x),
                        .y = nullptr,
                        .weight = parts_.weights.at(*work.norm),
                        .run = static_cast<std::int32_t>(work.norm->size()),
                        .epsilon = work.epsilon,
                        .out = x.data,
                        .quantised = {}},
                       handle());
    }
    if (work.rope != nullptr) {
        const StepBlock::Angles angles = view_.block->angles(*work.rope);
        cuda::rotate({.x = rows(x),
                      .run = static_cast<std::int32_t>(work.head_width),
                      .offset = 0,
                      .pairs = static_cast<std::int32_t>(work.rope->frequencies.size()),
                      .style = work.rope->style == models::RopeStyle::Adjacent ? cuda::RotationStyle::Adjacent
                                                                               : cuda::RotationStyle::Halves,
                      .cosines = angles.cosines,
                      .sines = angles.sines},
                     handle());
    }
    work = {};
}

void CudaOps::flush_add() {
    if (!pending_add_) return;
    Buffer& x = buffer(pending_add_->first);
    cuda::add(rows(x), buffer(pending_add_->second).data, handle());
    x.quantised_now = false;
    pending_add_.reset();
}

void CudaOps::rms_norm(Value x, const Vector& weight, float epsilon, Value out) {
    Buffer& from = buffer(x);
    Buffer& to = buffer(out);
    const auto run = static_cast<std::int64_t>(weight.size());
    if (run < x.width) {
        COTERIE_CHECK(x.index == out.index && head_work(x).rope == nullptr);
        settle(x);
        head_work(x) = {.norm = &weight, .epsilon = epsilon, .rope = nullptr, .head_width = run};
        return;
    }
    const bool adds = pending_add_ && pending_add_->first.index == x.index;
    if (!adds) flush_add();
    cuda::rms_norm({.x = rows(from),
                    .y = adds ? buffer(pending_add_->second).data : nullptr,
                    .weight = parts_.weights.at(weight),
                    .run = static_cast<std::int32_t>(run),
                    .epsilon = epsilon,
                    .out = to.data,
                    .quantised = to.quantised},
                   handle());
    if (adds) pending_add_.reset();
    if (x.index != out.index) from.quantised_now = false;
    to.quantised_now = true;
}

cuda::Activations CudaOps::inputs(Buffer& x, bool wants_quantised) {
    if (wants_quantised && !x.quantised_now) {
        cuda::quantise(rows(x), x.quantised, handle());
        x.quantised_now = true;
    }
    return {x.data, x.stride, x.quantised};
}

cuda::MatmulJob CudaOps::job(const Matrix& matrix, float* out, std::int64_t out_stride) const {
    return {.weights = parts_.weights.at(matrix),
            .row_bytes = matrix.row_bytes,
            .rows = static_cast<std::int32_t>(matrix.rows),
            .scale = matrix.scale,
            .bias = parts_.weights.at(matrix.bias),
            .out = out,
            .out_stride = out_stride};
}

/// One launch for each type among the matrices.
void CudaOps::multiply(Buffer& x, std::span<const Matrix* const> matrices, std::span<float* const> outs,
                       std::span<const std::int64_t> strides) {
    std::uint64_t done = 0;
    for (std::size_t first = 0; first < matrices.size(); ++first) {
        if (done >> first & 1) continue;
        const DataType type = matrices[first]->type;
        cuda::MatmulArgs args;
        args.columns = static_cast<std::int32_t>(matrices[first]->columns);
        args.tokens = static_cast<std::int32_t>(view_.tokens);
        args.x = inputs(x, quantised(type));
        for (std::size_t i = first; i < matrices.size() && args.count < cuda::kMatmulJobs; ++i) {
            if (matrices[i]->type != type || (done >> i & 1)) continue;
            args.jobs[args.count++] = job(*matrices[i], outs[i], strides[i]);
            done |= std::uint64_t{1} << i;
        }
        cuda::matmul_kernels(type)->matmul(args, handle());
    }
}

void CudaOps::project(Value x, std::span<const models::Projection> projections) {
    COTERIE_CHECK(projections.size() <= 8);
    flush_add();
    settle(x);
    std::array<const Matrix*, 8> matrices{};
    std::array<float*, 8> outs{};
    std::array<std::int64_t, 8> strides{};
    for (std::size_t i = 0; i < projections.size(); ++i) {
        Buffer& out = buffer(projections[i].out);
        out.quantised_now = false;
        head_work(projections[i].out) = {};
        matrices[i] = &projections[i].weight;
        outs[i] = out.data;
        strides[i] = out.stride;
    }
    const std::size_t n = projections.size();
    multiply(buffer(x), std::span(matrices).first(n), std::span(outs).first(n), std::span(strides).first(n));
}

void CudaOps::add(Value x, Value y) {
    flush_add();
    settle(x);
    settle(y);
    pending_add_.emplace(x, y);
}

void CudaOps::rope(Value x, std::int64_t head_width, std::int64_t offset, const models::Rope& rope) {
    COTERIE_CHECK(offset == 0);
    HeadWork& work = head_work(x);
    if (work.rope != nullptr || (work.norm != nullptr && work.head_width != head_width)) settle(x);
    work.rope = &rope;
    work.head_width = head_width;
    buffer(x).quantised_now = false;
}

cuda::CachePages CudaOps::cache_of(int layer) const {
    const auto& types = std::get<KeyValueLayer>(layout_->layer(layer));
    const PagePart& keys = layout_->keys(layer);
    const PagePart& values = layout_->values(layer);
    return {.base = pages_,
            .page_bytes = layout_->page_bytes(),
            .keys = {keys.offset, keys.row_bytes, keys.head_bytes, types.key_type},
            .values = {values.offset, values.row_bytes, values.head_bytes, types.value_type}};
}

void CudaOps::attention(int layer, const models::Attention& attention, Value queries, Value keys,
                        Value values, Value out) {
    flush_add();
    const HeadWork query_work = head_work(queries);
    const HeadWork key_work = head_work(keys);
    const models::Rope* rope = query_work.rope != nullptr ? query_work.rope : key_work.rope;
    COTERIE_CHECK(rope == nullptr || key_work.rope == nullptr || key_work.rope == rope);
    const auto pairs = [](const HeadWork& work) {
        return work.rope == nullptr ? 0 : static_cast<std::int32_t>(work.rope->frequencies.size());
    };
    cuda::AttentionInputs inputs;
    inputs.queries = rows(buffer(queries));
    inputs.keys = rows(buffer(keys));
    inputs.values = rows(buffer(values));
    inputs.heads = static_cast<std::int32_t>(attention.heads);
    inputs.kv_heads = static_cast<std::int32_t>(attention.kv_heads);
    inputs.key_width = static_cast<std::int32_t>(attention.key_width);
    inputs.value_width = static_cast<std::int32_t>(attention.value_width);
    inputs.query_norm = query_work.norm != nullptr ? parts_.weights.at(*query_work.norm) : nullptr;
    inputs.key_norm = key_work.norm != nullptr ? parts_.weights.at(*key_work.norm) : nullptr;
    inputs.query_epsilon = query_work.epsilon;
    inputs.key_epsilon = key_work.epsilon;
    inputs.query_pairs = pairs(query_work);
    inputs.key_pairs = pairs(key_work);
    if (rope != nullptr) {
        inputs.style = rope->style == models::RopeStyle::Adjacent ? cuda::RotationStyle::Adjacent
                                                                  : cuda::RotationStyle::Halves;
        const StepBlock::Angles angles = view_.block->angles(*rope);
        inputs.cosines = angles.cosines;
        inputs.sines = angles.sines;
    }
    inputs.places = view_.block->places();
    inputs.cache = cache_of(layer);
    cuda::store_attention_inputs(inputs, handle());
    head_work(queries) = {};
    head_work(keys) = {};

    Buffer& to = buffer(out);
    cuda::AttentionArgs args;
    args.queries = inputs.queries;
    args.heads = inputs.heads;
    args.kv_heads = inputs.kv_heads;
    args.key_width = inputs.key_width;
    args.value_width = inputs.value_width;
    args.scale = attention.scale;
    args.window = static_cast<std::int32_t>(attention.window);
    args.sinks = attention.sinks != nullptr ? parts_.weights.at(*attention.sinks) : nullptr;
    args.places = inputs.places;
    args.cache = inputs.cache;
    args.out = to.data;
    args.out_stride = to.stride;
    to.quantised_now = attention.value_width % kGroupValues == 0;
    if (to.quantised_now) args.quantised = to.quantised;
    args.pages = view_.pages;
    if (attention.window > 0) {
        const auto visible = static_cast<std::int32_t>(pages_for(attention.window) + 1);
        args.pages = std::min(args.pages, visible);
    }
    const std::int64_t floats = view_.tokens * attention.heads * args.pages * (attention.value_width + 2);
    args.partials = view_.tokens <= kDecodeTokens && floats <= partial_floats_ ? partials_ : nullptr;
    if (view_.tokens > kDecodeTokens) return cuda::prompt_attention(args, handle());
    args.arrivals = arrivals_;
    cuda::attention(args, handle());
}

void CudaOps::run_ffn(const models::DenseFfn& ffn, models::FfnActivation activation, Buffer& x, float* out,
                      std::int64_t out_stride) {
    Buffer hidden = dense_hidden_;
    hidden.width = ffn.down.columns;
    hidden.stride = padded(hidden.width);
    hidden.quantised.groups = stored_groups(hidden.width);
    const std::array<const Matrix*, 2> matrices{&ffn.gate, &ffn.up};
    const std::array<float*, 2> outs{hidden.data, dense_up_};
    const std::array<std::int64_t, 2> strides{hidden.stride, hidden.stride};
    multiply(x, matrices, outs, strides);
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
    multiply(hidden, down, down_out, down_stride);
}

void CudaOps::dense_ffn(const models::DenseFfn& ffn, Value x, Value out) {
    flush_add();
    settle(x);
    Buffer& to = buffer(out);
    run_ffn(ffn, models::FfnActivation::SwiGlu, buffer(x), to.data, to.stride);
    to.quantised_now = false;
}

void CudaOps::run_router(int layer, const models::MoeFfn& ffn, Buffer& x) {
    const std::array<const Matrix*, 1> router{&ffn.router};
    const std::array<float*, 1> out{router_logits_};
    const std::array<std::int64_t, 1> stride{router_stride_};
    multiply(x, router, out, stride);
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
    args.x = inputs(x, quantised(ffn.gate.type) || quantised(ffn.up.type));
    args.columns = static_cast<std::int32_t>(x.width);
    args.counters = counters();
    args.mailbox = parts_.mailbox.view();
    cuda::route(args, handle());
}

cuda::SortedPairs CudaOps::sort_pairs(const cpu::Routing& routing) {
    const std::int64_t pairs = view_.tokens * routing.used;
    if (view_.tokens <= kDecodeTokens || pairs < 2 * routing.experts) return {};
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
                    .quantised = hidden.quantised.from(first)},
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
void CudaOps::run_gate_up(const models::MoeFfn& ffn, Buffer& x, const Buffer& hidden) {
    cuda::ExpertGateArgs args;
    args.slots = slots_;
    args.experts = chosen_;
    set_matrix(ffn.gate, 0, 0, args);
    set_matrix(ffn.up, static_cast<std::uint64_t>(ffn.gate.bytes_per_expert()), 1, args);
    args.pairs = static_cast<std::int32_t>(view_.tokens * ffn.routing.used);
    args.pairs_per_input = static_cast<std::int32_t>(ffn.routing.used);
    args.activation = gate_of(ffn.activation);
    args.x = inputs(x, true);
    args.out = quantised(ffn.down.type) ? nullptr : hidden.data;
    args.out_stride = hidden.stride;
    args.quantised = hidden.quantised;
    cuda::matmul_kernels(ffn.gate.type)->expert_gate_up(args, handle());
}

/// One after the other, for sorted pairs and for types that differ or have no kernel for both.
void CudaOps::run_gate_and_up(const models::MoeFfn& ffn, Buffer& x, const Buffer& hidden,
                              const cuda::SortedPairs& sorted) {
    const auto pairs = static_cast<std::int32_t>(view_.tokens * ffn.routing.used);
    float* up = hidden.data + pairs * hidden.stride;
    const auto multiply_one = [&](const models::ExpertMatrix& weight, std::uint64_t offset, float* out) {
        cuda::ExpertMatmulArgs args;
        args.slots = slots_;
        args.experts = chosen_;
        args.pairs = pairs;
        args.pairs_per_input = static_cast<std::int32_t>(ffn.routing.used);
        set_matrix(weight, offset, 0, args);
        args.x = inputs(x, quantised(weight.type));
        args.out = out;
        args.out_stride = hidden.stride;
        args.sorted = sorted;
        cuda::matmul_kernels(weight.type)->expert_matmul(args, handle());
    };
    multiply_one(ffn.gate, 0, hidden.data);
    multiply_one(ffn.up, static_cast<std::uint64_t>(ffn.gate.bytes_per_expert()), up);
    gate_experts(ffn, hidden, pairs);
}

void CudaOps::run_experts(const models::MoeFfn& ffn, Buffer& x) {
    const auto pairs = static_cast<std::int32_t>(view_.tokens * ffn.routing.used);
    const cuda::SortedPairs sorted = sort_pairs(ffn.routing);
    const auto down_offset =
        static_cast<std::uint64_t>(ffn.gate.bytes_per_expert() + ffn.up.bytes_per_expert());
    Buffer hidden = expert_hidden_;
    hidden.width = ffn.down.columns;
    hidden.stride = padded(hidden.width);
    hidden.quantised.groups = stored_groups(hidden.width);
    const bool fused = sorted.order == nullptr && ffn.gate.type == ffn.up.type &&
                       cuda::matmul_kernels(ffn.gate.type)->expert_gate_up != nullptr;
    if (fused) {
        run_gate_up(ffn, x, hidden);
    } else {
        run_gate_and_up(ffn, x, hidden, sorted);
    }
    cuda::ExpertMatmulArgs down;
    down.sorted = sorted;
    down.slots = slots_;
    down.experts = chosen_;
    down.pairs = pairs;
    down.slots_known = fused;
    set_matrix(ffn.down, down_offset, 0, down);
    down.x = {hidden.data, hidden.stride, hidden.quantised};
    down.out = expert_rows_;
    down.out_stride = expert_row_stride_;
    cuda::matmul_kernels(ffn.down.type)->expert_matmul(down, handle());
}

void CudaOps::moe_ffn(int layer, const models::MoeFfn& ffn, Value x, Value out) {
    flush_add();
    settle(x);
    Buffer& from = buffer(x);
    Buffer& to = buffer(out);
    if (before_experts_) before_experts_(layer);
    run_router(layer, ffn, from);
    run_experts(ffn, from);
    if (after_experts_) after_experts_(layer);
    if (ffn.shared) run_ffn(*ffn.shared, ffn.activation, from, shared_rows_, to.stride);
    if (ffn.shared_gate) {
        const std::array<const Matrix*, 1> gate{&*ffn.shared_gate};
        const std::array<float*, 1> gate_out{shared_gates_};
        const std::array<std::int64_t, 1> gate_stride{1};
        multiply(from, gate, gate_out, gate_stride);
    }
    cuda::combine({.layer = layer,
                   .used = static_cast<std::int32_t>(ffn.routing.used),
                   .out = rows(to),
                   .rows = expert_rows_,
                   .stride = expert_row_stride_,
                   .slots = slots_,
                   .weights = weights_,
                   .shared = ffn.shared ? shared_rows_ : nullptr,
                   .shared_gate = ffn.shared_gate ? shared_gates_ : nullptr,
                   .counters = counters(),
                   .mailbox = parts_.mailbox.view()},
                  handle());
    to.quantised_now = false;
}

void CudaOps::layer_done(int, Value) {}

void CudaOps::logits(Value, const Vector& norm, float epsilon, const Matrix& output) {
    output_norm_ = &norm;
    output_epsilon_ = epsilon;
    output_ = &output;
    if (!view_.all_logits) flush_add();
}

void CudaOps::queue_logits(std::int64_t first, std::int64_t count) {
    const Value residual = parts_.model.residual;
    Buffer input = gathered_;
    cuda::Rows wanted = rows(buffer(residual));
    const float* added = nullptr;
    if (view_.all_logits) {
        wanted.data += first * wanted.stride;
        if (pending_add_) added = buffer(pending_add_->second).data + first * wanted.stride;
    } else {
        cuda::gather(wanted, view_.block->logits_rows() + first, static_cast<std::int32_t>(count), input.data,
                     handle());
        wanted.data = input.data;
    }
    wanted.rows = static_cast<std::int32_t>(count);
    cuda::rms_norm({.x = wanted,
                    .y = added,
                    .weight = parts_.weights.at(*output_norm_),
                    .run = static_cast<std::int32_t>(input.width),
                    .epsilon = output_epsilon_,
                    .out = input.data,
                    .quantised = input.quantised},
                   handle());
    cuda::MatmulArgs args;
    args.jobs[args.count++] = job(*output_, logits_, parts_.model.config.vocabulary);
    args.columns = static_cast<std::int32_t>(output_->columns);
    args.tokens = static_cast<std::int32_t>(count);
    args.x = {input.data, input.stride, input.quantised};
    cuda::matmul_kernels(output_->type)->matmul(args, handle());
}

void CudaOps::project_heads(const models::ExpertMatrix&, Value, std::int64_t, std::int64_t, Value,
                            std::int64_t) {
    fail_unsupported();
}
void CudaOps::copy_heads(Value, std::int64_t, std::int64_t, Value, std::int64_t, std::int64_t, std::int64_t,
                         std::int64_t) {
    fail_unsupported();
}
void CudaOps::sigmoid_gate(Value, Value) { fail_unsupported(); }
void CudaOps::delta_net(int, const models::DeltaNet&, Value, Value, Value, Value, Value) {
    fail_unsupported();
}

}  // namespace coterie::engine
