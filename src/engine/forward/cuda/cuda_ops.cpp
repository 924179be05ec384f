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

bool quantised(DataType type) { return traits(type).uses_quantised_activation; }

std::int64_t padded(std::int64_t width) { return activation_groups(width) * kGroupValues; }

[[noreturn]] void fail_unsupported() {
    fail(ErrorCode::Internal, "an operation that GPUs do not have was not refused");
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
    residual_home_ = residual();
    residual_away_ = arena.take<float>(kWindowTokens * residual_stride());
    if (list.widest_dense > 0) {
        dense_hidden_ = take_buffer(arena, max_tokens, list.widest_dense);
        dense_up_ = arena.take<float>(max_tokens * dense_hidden_.stride);
    }
    const std::int64_t pairs = max_tokens * most_used(list);
    if (pairs > 0) {
        take_expert_rows(arena, pairs);
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
    times_ = arena.take<cuda::HandOffTimes>(1);
    parts_.stream.fill(device_address(times_), sizeof(cuda::HandOffTimes), std::byte{0});
    answered_ = arena.take<std::uint64_t>(1);
    parts_.stream.fill(device_address(answered_), sizeof(std::uint64_t), std::byte{0});
    router_arrivals_ = arena.take<std::uint32_t>(kWindowTokens);
    parts_.stream.fill(device_address(router_arrivals_), kWindowTokens * sizeof(std::uint32_t), std::byte{0});
    if (pairs > 0) {
        routed_experts_ = arena.take<std::int32_t>(layers * pairs);
        routed_weights_ = arena.take<float>(layers * pairs);
    }
    const std::int64_t rows = std::min(kPartialRows, kWindowTokens * list.most_heads * pages_for(context));
    partial_floats_ = rows * (list.widest_value + 2);
    partials_ = arena.take<float>(partial_floats_);
    arrivals_ = arena.take<std::uint32_t>(kWindowTokens * list.most_heads);
    parts_.stream.fill(device_address(arrivals_),
                       static_cast<std::uint64_t>(kWindowTokens * list.most_heads) * 4, std::byte{0});
    gathered_ = take_buffer(arena, logits_rows, model.config.embedding);
    logits_ = arena.take<float>(logits_rows * model.config.vocabulary);
}

CudaOps::Buffer CudaOps::take_buffer(DeviceArena& arena, std::int64_t rows, std::int64_t width) const {
    return take_buffer(arena, rows, width, arena.take<float>(rows * padded(width)));
}

CudaOps::Buffer CudaOps::take_buffer(DeviceArena& arena, std::int64_t rows, std::int64_t width,
                                     float* data) const {
    Buffer result;
    result.width = width;
    result.stride = padded(width);
    result.data = data;
    const std::int64_t groups = stored_groups(width);
    auto* memory = arena.take<std::byte>(cuda::ActivationBuffer::bytes(rows, groups));
    result.quantised = cuda::ActivationBuffer::in(memory, rows, groups);
    return result;
}

/// Gate and up are dead once they are quantised. So where every down matrix reads that form, its outputs take
/// their place.
void CudaOps::take_expert_rows(DeviceArena& arena, std::int64_t pairs) {
    const WeightList& list = parts_.list;
    const bool some_reads_values =
        std::any_of(list.experts.begin(), list.experts.end(),
                    [](const models::MoeFfn* ffn) { return ffn != nullptr && !quantised(ffn->down.type); });
    expert_row_stride_ = padded(parts_.model.config.embedding);
    const std::int64_t hidden = 2 * pairs * padded(list.widest_expert);
    const std::int64_t rows = pairs * expert_row_stride_;
    if (some_reads_values) {
        expert_hidden_ = take_buffer(arena, pairs, list.widest_expert, arena.take<float>(hidden));
        expert_rows_ = arena.take<float>(rows);
    } else {
        expert_rows_ = arena.take<float>(std::max(hidden, rows));
        expert_hidden_ = take_buffer(arena, pairs, list.widest_expert, expert_rows_);
    }
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

void CudaOps::set_state(const StateLayout& layout, const PagePiece& piece) {
    layout_ = &layout;
    pages_ = piece;
}

void CudaOps::begin(const StepView& view) {
    view_ = view;
    pending_add_.reset();
    pending_norm_.reset();
    buffer(parts_.model.residual).data = residual_home_;
    buffer(parts_.model.residual).quantised_now = false;
    std::fill(head_work_.begin(), head_work_.end(), HeadWork{});
}

void CudaOps::queue_begin() {
    const auto layers = static_cast<std::uint64_t>(parts_.list.experts.size());
    parts_.stream.fill(device_address(missing_), 2 * layers * sizeof(std::uint32_t), std::byte{0});
}

void CudaOps::queue_finish() {
    const std::int64_t used = most_used(parts_.list);
    const std::int64_t first = parts_.layers.begin * max_tokens_ * used;
    cuda::FinishArgs args{.layers = parts_.layers.size(),
                          .pairs = static_cast<std::int32_t>(view_.tokens * used),
                          .layer_pairs = max_tokens_ * used,
                          .counters = counters(),
                          .mailbox = parts_.mailbox.view()};
    args.counters.experts += first;
    args.counters.weights += first;
    args.mailbox.experts += first;
    args.mailbox.weights += first;
    cuda::finish_step(args, handle());
}

const float* CudaOps::queue_residual() {
    flush();
    return residual();
}

/// The step's block has brought the rows already.
void CudaOps::embed(const Matrix&, Value) {}

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

/// Those of one type, as many as a launch takes.
void CudaOps::take_jobs(DataType type, Products& products, cuda::MatmulArgs& args) const {
    for (std::size_t i = 0; i < products.matrices.size() && args.count < cuda::kMatmulJobs; ++i) {
        if (products.matrices[i]->type != type || (products.done >> i & 1)) continue;
        args.jobs[args.count++] = job(*products.matrices[i], products.outs[i], products.strides[i]);
        products.done |= std::uint64_t{1} << i;
    }
}

/// One launch for each type among the matrices.
void CudaOps::multiply(Buffer& x, Products products) {
    for (std::size_t first = 0; first < products.matrices.size(); ++first) {
        if (products.done >> first & 1) continue;
        const DataType type = products.matrices[first]->type;
        cuda::MatmulArgs args;
        args.columns = static_cast<std::int32_t>(products.matrices[first]->columns);
        args.tokens = static_cast<std::int32_t>(view_.tokens);
        args.x = inputs(x, quantised(type));
        take_jobs(type, products, args);
        cuda::matmul_kernels(type)->matmul(args, handle());
    }
}

void CudaOps::project(Value x, std::span<const models::Projection> projections) {
    COTERIE_CHECK(projections.size() <= 8);
    if (!norm_is_pending_for(x)) flush();
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
    Products products{std::span(matrices).first(n), std::span(outs).first(n), std::span(strides).first(n)};
    if (norm_is_pending_for(x)) multiply_normed(x, products);
    multiply(buffer(x), products);
}

void CudaOps::add(Value x, Value y) {
    flush();
    settle(x);
    settle(y);
    pending_add_.emplace(x, y);
}

void CudaOps::rope(Value x, std::int64_t head_width, std::int64_t offset, const models::Rope& rope) {
    COTERIE_CHECK(offset == 0 && !norm_is_pending_for(x));
    HeadWork& work = head_work(x);
    if (work.rope != nullptr || (work.norm != nullptr && work.head_width != head_width)) settle(x);
    work.rope = &rope;
    work.head_width = head_width;
    buffer(x).quantised_now = false;
}

void CudaOps::layer_done(int, Value) {}

void CudaOps::logits(Value, const Vector& norm, float epsilon, const Matrix& output) {
    output_norm_ = &norm;
    output_epsilon_ = epsilon;
    output_ = &output;
    if (pending_norm_ || !view_.all_logits) flush();
}

void CudaOps::queue_logits(std::int64_t first, std::int64_t count, float* out) {
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
    args.jobs[args.count++] = job(*output_, out, parts_.model.config.vocabulary);
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
