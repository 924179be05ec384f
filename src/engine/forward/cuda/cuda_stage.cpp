#include "engine/forward/cuda/cuda_stage.h"

#include <algorithm>

#include "base/error.h"
#include "base/function_ref.h"
#include "base/log.h"
#include "engine/forward/cuda/gpu_kernel_check.h"

namespace coterie::engine {
namespace {

constexpr std::int64_t kMostSequences = 64;

/// From a layer's router to the CPU's start and back, beside the work: docs/benchmarks.md.
constexpr double kHandOffSeconds = 15e-6;

bool reads_values(DataType type) { return !traits(type).uses_quantised_activation; }

bool some_expert_reads_values(const WeightList& list) {
    return std::any_of(list.experts.begin(), list.experts.end(), [](const models::MoeFfn* ffn) {
        return ffn != nullptr && (reads_values(ffn->gate.type) || reads_values(ffn->up.type));
    });
}

void prepare_kernels(const WeightList& list) {
    const auto prepare = [](DataType type) {
        const cuda::MatmulKernels* kernels = cuda::matmul_kernels(type);
        if (kernels == nullptr) {
            fail(ErrorCode::Unsupported, "GPUs have no product with {} weights; run this model with -ngl 0",
                 traits(type).name);
        }
        if (kernels->prepare != nullptr) kernels->prepare();
    };
    for (const models::Matrix* matrix : list.matrices) prepare(matrix->type);
    for (const models::MoeFfn* ffn : list.experts) {
        if (ffn == nullptr) continue;
        for (const models::ExpertMatrix* matrix : {&ffn->gate, &ffn->up, &ffn->down}) prepare(matrix->type);
    }
}

void check_experts(const models::Model& model, const models::MoeFfn& ffn) {
    const std::uint64_t up = static_cast<std::uint64_t>(ffn.gate.bytes_per_expert());
    const std::uint64_t down = up + static_cast<std::uint64_t>(ffn.up.bytes_per_expert());
    if (ffn.routing.experts > cuda::kMostExperts || ffn.routing.used > cuda::kMostUsed ||
        up % cuda::kWeightAlignment != 0 || down % cuda::kWeightAlignment != 0) {
        fail(ErrorCode::Unsupported,
             "{}: the GPU's kernels do not take {} experts of {} and {} bytes, {} used",
             model.config.architecture, ffn.routing.experts, up, down - up, ffn.routing.used);
    }
}

void check_sizes(const models::Model& model, const WeightList& list) {
    if (!list.unsupported.empty()) {
        fail(ErrorCode::Unsupported, "{}: GPUs do not have {} so far; use -ngl 0", model.config.architecture,
             list.unsupported);
    }
    if (list.widest_value > cuda::kWidestHead || model.config.embedding > cuda::kLongestNorm) {
        fail(ErrorCode::Unsupported,
             "{}: heads of {} and rows of {} values are wider than the GPU's kernels take ({}, {})",
             model.config.architecture, list.widest_value, model.config.embedding, cuda::kWidestHead,
             cuda::kLongestNorm);
    }
    for (const models::MoeFfn* ffn : list.experts) {
        if (ffn != nullptr) check_experts(model, *ffn);
    }
}

/// Where the layers behind `layers` begin in a page.
std::uint64_t page_end(const StateLayout& layout, LayerRange layers) {
    return layers.end == layout.layers() ? layout.page_bytes() : layout.keys(layers.end).offset;
}

}  // namespace

CudaStage::CudaStage(const Parts& parts, CudaDevice& device, LayerRange layers,
                     const DeviceForwardOptions& options, DevicePages* pages, std::uint64_t budget)
    : parts_(parts),
      device_(device),
      layers_(layers),
      list_(collect_weights(parts.model, layers)),
      max_tokens_(options.max_tokens),
      arena_(device) {
    const models::Model& model = parts.model;
    check_sizes(model, list_);
    device.make_current();
    prepare_kernels(list_);
    stream_ = device.create_cuda_stream();
    check_gpu_kernels(device, *stream_, list_);
    weights_.emplace(device, list_);

    const std::int64_t width = model.config.embedding;
    mailbox_.emplace(device, list_, max_tokens_, width, some_expert_reads_values(list_));
    residents_.emplace(device, arena_, list_);
    link_.emplace(device, arena_, list_, parts.catalog.host_memory() == expert_cache::HostMemory::Pinned);
    ops_.emplace(
        CudaOps::Parts{device, *stream_, model, list_, *weights_, *mailbox_, *residents_, *link_, layers},
        arena_, max_tokens_, kLogitsRows, options.context);
    const std::int64_t page_stride = pages_for(options.context) + 1;
    const auto shape = [&](std::int64_t tokens, std::int64_t sequences) {
        return StepBlock::Shape{tokens, sequences, page_stride, ops_->residual_stride(), list_.ropes};
    };
    window_block_.emplace(device, arena_, shape(kWindowTokens, kWindowTokens));
    long_block_.emplace(device, arena_, shape(max_tokens_, kMostSequences));
    server_.emplace(list_, *mailbox_, *residents_, *link_, parts.pass, max_tokens_, width);
    logits_host_ = device.allocate_mapped(static_cast<std::uint64_t>(kLogitsRows * model.config.vocabulary) *
                                          sizeof(float));
    passed_on_ = device.create_event();
    if (parts.previous != nullptr) {
        parts.previous->next_ = this;
        inbox_ = device.allocate_pinned(static_cast<std::uint64_t>(max_tokens_ * ops_->residual_stride()) *
                                        sizeof(float));
    }

    const std::uint64_t first = layers.begin == 0 ? 0 : options.layout->keys(layers.begin).offset;
    const std::uint64_t bytes = page_end(*options.layout, layers) - first;
    std::byte* base = pages != nullptr ? pages->add_piece(device, first + bytes) : nullptr;
    ops_->set_state(*options.layout, {base, first, bytes});
    use_ = {.layers = layers,
            .dense_bytes = weights_->bytes(),
            .state_bytes = options.pages * bytes,
            .workspace_bytes = arena_.bytes()};
    const std::uint64_t used = use_.dense_bytes + use_.state_bytes + use_.workspace_bytes;
    if (used > budget) {
        fail(ErrorCode::OutOfMemory,
             "{} MiB of memory of GPU {} are allowed, but the dense weights take {}, the context {} and the "
             "workspace {} MiB; use a smaller -c or -b, a larger --vram, or -ngl 0",
             budget >> 20, device.info().index, use_.dense_bytes >> 20, use_.state_bytes >> 20,
             use_.workspace_bytes >> 20);
    }
    slot_budget_ = budget - used;
}

CudaStage::~CudaStage() {
    release();
    drain();
}

void CudaStage::use_cache(expert_cache::ExpertCache& cache, std::int32_t index) {
    cache_ = &cache;
    index_ = index;
    for (int layer = layers_.begin; layer < layers_.end; ++layer) {
        use_.slot_bytes +=
            static_cast<std::uint64_t>(cache.slots(index, layer)) * parts_.catalog.layout(layer).bytes;
    }
    prompt_stream_.emplace(device_, parts_.catalog, layers_);
}

/// Other experts each time: none is in a cache.
MissCosts CudaStage::costs_of_misses(int layer) {
    constexpr std::int64_t kAlone = 15;
    constexpr std::int64_t kBeside = 5;  // fewer than a token's take over the link
    const double link = ops_->seconds_per_linked_expert(layer, *window_block_, [] {});
    const double cpu = server_->seconds_per_expert(layer, 0, kAlone);
    std::vector<double> beside;
    std::int64_t next = kAlone;
    ops_->seconds_per_linked_expert(layer, *window_block_, [&] {
        beside.push_back(server_->seconds_per_expert(layer, next, kBeside));
        next += kBeside;
    });
    std::sort(beside.begin(), beside.end());
    return {
        .link = link, .cpu = cpu, .contended_cpu = beside[beside.size() / 2], .hand_off = kHandOffSeconds};
}

void CudaStage::measure_misses(const std::optional<MissCosts>& known) {
    if (known) return link_->set_costs(*known);
    for (int layer = layers_.begin; layer < layers_.end; ++layer) {
        if (link_->addresses(layer).gate == nullptr) continue;
        device_.make_current();
        const MissCosts costs = costs_of_misses(layer);
        link_->set_costs(costs);
        log::debug(
            "{}: a missing expert takes {:.0f} us over the link, {:.0f} us on the CPU, {:.0f} beside the "
            "link",
            device_.info().name, 1e6 * costs.link, 1e6 * costs.cpu, 1e6 * costs.contended_cpu);
        return;
    }
}

void CudaStage::borrow() {
    refresh();
    streams_ = prompt_stream_ && !residents_->complete() && prompt_stream_->begin(*cache_, index_);
}

void CudaStage::refresh() {
    if (cache_ != nullptr) residents_->refresh(*cache_, index_, *stream_);
}

void CudaStage::give_back() {
    if (prompt_stream_) prompt_stream_->end();
    streams_ = false;
}

bool CudaStage::is_window() const {
    return static_cast<std::int64_t>(step_.tokens.size()) <= kWindowTokens &&
           static_cast<std::int64_t>(step_.slices.size()) <= kWindowTokens;
}

CudaOps::StepView CudaStage::view_of(const Step& step, const StepBlock& block) const {
    std::int64_t pages = 1;
    for (const StepSlice& slice : step.slices)
        pages = std::max(pages, pages_for(slice.position + slice.count));
    const auto tokens = static_cast<std::int64_t>(step.tokens.size());
    const std::int64_t logits = last() ? static_cast<std::int64_t>(step.logits_rows.size()) : 0;
    return {&block, tokens, logits, logits == tokens, static_cast<std::int32_t>(pages)};
}

void CudaStage::write_block(StepBlock& block, std::uint64_t number) {
    positions_.clear();
    for (const StepSlice& slice : step_.slices) {
        for (std::int64_t i = 0; i < slice.count; ++i) positions_.push_back(slice.position + i);
    }
    ropes_.begin(positions_);
    block.write(step_, number, ropes_);
    if (first()) block.write_embeddings(step_, parts_.model.token_embedding);
}

void CudaStage::prepare(const Step& step, std::uint64_t number) {
    COTERIE_CHECK(!busy() && !step.tokens.empty() &&
                  static_cast<std::int64_t>(step.tokens.size()) <= max_tokens_);
    step_ = step;
    number_ = number;
    device_.make_current();
    StepBlock& block = is_window() ? *window_block_ : *long_block_;
    write_block(block, number);
    view_ = view_of(step, block);
    graph_ = nullptr;
    if (is_window()) record_window();
    if (!streams_) return;
    refresh();  // the part before has left the places in the table through which it streamed
    prompt_stream_->name_places(*residents_, *stream_);
}

void CudaStage::begin() {
    device_.make_current();
    if (!first()) stream_->wait_for(*parts_.previous->passed_on_);
    if (graph_ != nullptr) {
        graph_->launch(*stream_);
    } else {
        queue_long();
    }
    if (!last()) stream_->record(*passed_on_);
    busy_ = true;
}

void CudaStage::queue(const CudaOps::StepView& view) {
    const auto bytes = static_cast<std::size_t>(view.tokens * ops_->residual_stride()) * sizeof(float);
    ops_->begin(view);
    ops_->queue_begin();
    view.block->send(*stream_);
    if (first()) {
        view.block->send_embeddings(*stream_, view.tokens, ops_->residual());
    } else {
        stream_->copy_to_device(device_address(ops_->residual()), inbox_->span().first(bytes));
    }
    RangeOps ops(*ops_, layers_, static_cast<int>(list_.experts.size()));
    parts_.model.forward(ops);
    if (!last())
        stream_->copy_to_host(next_->inbox_->span().first(bytes), device_address(ops_->queue_residual()));
}

void CudaStage::record_window() {
    CudaOps::StepView recorded = view_;
    recorded.pages = 4;
    while (recorded.pages < view_.pages) recorded.pages *= 2;
    auto& graph = graphs_[{view_.tokens, view_.logits, view_.all_logits, recorded.pages}];
    if (!graph) {
        ops_->on_experts(nullptr, nullptr);
        graph = std::make_unique<CudaGraph>(*stream_, [&] {
            queue(recorded);
            if (view_.logits > 0) {
                // Written there by the product itself: a copy would begin when that has ended.
                ops_->queue_logits(0, view_.logits, reinterpret_cast<float*>(logits_host_->span().data()));
            }
            ops_->queue_finish();
        });
    }
    graph_ = graph.get();
}

void CudaStage::queue_long() {
    if (streams_) {
        ops_->on_experts(
            [this](int layer) { counts_.streamed_bytes += prompt_stream_->bring(layer, *stream_); },
            [this](int layer) { prompt_stream_->consumed(layer, *stream_); });
    } else {
        ops_->on_experts(nullptr, nullptr);
    }
    queue(view_);
    ops_->queue_finish();
}

bool CudaStage::poll() { return server_->serve(number_, view_.tokens, cache_, counts_); }

void CudaStage::take_logits(std::int64_t first_row) {
    if (is_window()) return consume(0, view_.logits, first_row);
    device_.make_current();
    for (std::int64_t first = 0; first < view_.logits; first += kLogitsRows) {
        const std::int64_t count = std::min(kLogitsRows, view_.logits - first);
        ops_->queue_logits(first, count, ops_->logits_buffer());
        copy_logits(count);
        stream_->synchronise();
        consume(first, count, first_row);
    }
}

void CudaStage::copy_logits(std::int64_t count) {
    const auto bytes = static_cast<std::size_t>(count * parts_.model.config.vocabulary) * sizeof(float);
    stream_->copy_to_host(logits_host_->span().first(bytes), device_address(ops_->logits_buffer()));
}

void CudaStage::consume(std::int64_t first, std::int64_t count, std::int64_t first_row) const {
    const auto vocabulary = static_cast<std::size_t>(parts_.model.config.vocabulary);
    const auto* logits = reinterpret_cast<const float*>(logits_host_->span().data());
    for (std::int64_t i = 0; i < count; ++i) {
        (*step_.logits)(first_row + step_.logits_rows[static_cast<std::size_t>(first + i)],
                        {logits + static_cast<std::size_t>(i) * vocabulary, vocabulary});
    }
}

std::span<const std::int32_t> CudaStage::experts(int layer) const {
    const std::int64_t used = list_.experts[static_cast<std::size_t>(layer)]->routing.used;
    return {mailbox_->view().experts + layer * max_tokens_ * used,
            static_cast<std::size_t>(view_.tokens * used)};
}

std::span<const float> CudaStage::weights(int layer) const {
    const std::int64_t used = list_.experts[static_cast<std::size_t>(layer)]->routing.used;
    return {mailbox_->view().weights + layer * max_tokens_ * used,
            static_cast<std::size_t>(view_.tokens * used)};
}

void CudaStage::drain() noexcept {
    try {
        stream_->synchronise();
    } catch (const Error& error) {
        log::warn("{}: {}", device_.info().name, error.what());
    }
    server_->recover();
    busy_ = false;
}

DeviceCounts CudaStage::counts() {
    cuda::HandOffTimes times;
    stream_->copy_to_host(std::as_writable_bytes(std::span(&times, 1)),
                          device_address(ops_->hand_off_times()));
    stream_->synchronise();
    DeviceCounts result = counts_;
    result.posting_seconds = 1e-9 * static_cast<double>(times.posting);
    result.waiting_seconds = 1e-9 * static_cast<double>(times.waiting);
    result.reading_seconds = 1e-9 * static_cast<double>(times.reading);
    return result;
}

}  // namespace coterie::engine
