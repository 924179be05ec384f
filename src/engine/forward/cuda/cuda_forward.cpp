#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/log.h"
#include "engine/forward/cuda/cuda_ops.h"
#include "engine/forward/cuda/device_pages.h"
#include "engine/forward/cuda/miss_server.h"
#include "engine/forward/cuda/prompt_stream.h"
#include "engine/forward/device_forward.h"
#include "engine/forward/hybrid/expert_catalog.h"

namespace coterie::engine {
namespace {

constexpr std::int64_t kLearningTokens = 32;  ///< steps up to here teach the cache
constexpr std::int64_t kLogitsRows = 32;
constexpr std::int64_t kMostSequences = 64;
constexpr std::int64_t kMostTokens = 16384;  ///< of a step
constexpr std::uint64_t kReserve = std::uint64_t{512}
                                   << 20;  ///< of a device's free memory that is left alone

/// Experts that a token may bring over the link beside the step: what the CPU reads for misses comes from the
/// same RAM.
constexpr std::uint64_t kUploadsPerToken = 2;

/// From a layer's router to the CPU's start and back, beside the work: docs/benchmarks.md.
constexpr double kHandOffSeconds = 15e-6;

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

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
        if (ffn == nullptr) continue;
        const std::uint64_t up = static_cast<std::uint64_t>(ffn->gate.bytes_per_expert());
        const std::uint64_t down = up + static_cast<std::uint64_t>(ffn->up.bytes_per_expert());
        if (ffn->routing.experts > cuda::kMostExperts || ffn->routing.used > cuda::kMostUsed ||
            up % cuda::kWeightAlignment != 0 || down % cuda::kWeightAlignment != 0) {
            fail(ErrorCode::Unsupported,
                 "{}: the GPU's kernels do not take {} experts of {} and {} bytes, {} used",
                 model.config.architecture, ffn->routing.experts, up, down - up, ffn->routing.used);
        }
    }
}

class CudaForward final : public DeviceForward {
  public:
    CudaForward(const models::Model& model, ExpertPass& pass, DeviceForwardOptions options);
    ~CudaForward() override;

    std::unique_ptr<PageMemory> take_pages() override;
    void step(const Step& step) override;
    expert_cache::ExpertCache* cache() override { return cache_.get(); }
    DeviceMemoryUse memory_use() const override { return use_; }
    DeviceForwardStatistics statistics() override;
    std::string device_name() const override { return device_->info().name; }
    bool reads_host_memory() const override { return !registrations_.empty(); }

  private:
    /// What a recorded graph depends on besides what the step's block holds.
    using GraphKey =
        std::tuple<std::int64_t, std::int64_t, bool, std::int32_t>;  ///< tokens, logits, all, pages

    void pin_host_memory();
    bool has_experts() const { return !catalog_.empty(); }
    void make_cache(std::uint64_t budget);
    void preload();
    void measure_misses();
    CudaOps::StepView view_of(const Step& step, const StepBlock& block) const;
    void run_window(const CudaOps::StepView& view);
    void run_long(const Step& step, const CudaOps::StepView& view, bool streams);
    void queue(const CudaOps::StepView& view);
    void copy_logits(std::int64_t count);
    void consume(const Step& step, std::int64_t first, std::int64_t count) const;
    void serve(std::int64_t tokens);
    void drain() noexcept;
    void learn(const Step& step, expert_cache::CacheStep* cache_step);
    void observe(const Step& step) const;

    const models::Model& model_;
    DeviceForwardOptions options_;
    SteadyClock clock_;
    std::unique_ptr<CudaDevice> device_;
    WeightList list_;
    ExpertCatalog catalog_;
    std::vector<std::unique_ptr<HostRegistration>> registrations_;
    std::unique_ptr<CudaStream> stream_;
    std::unique_ptr<PageMemory> pages_;
    std::byte* page_base_ = nullptr;
    std::optional<StateLayout> layout_;
    std::optional<DeviceWeights> weights_;
    std::optional<DeviceArena> arena_;
    std::optional<HostMailbox> mailbox_;
    std::optional<ResidentTable> residents_;
    std::optional<LinkPath> link_;
    std::optional<StepBlock> window_block_;
    std::optional<StepBlock> long_block_;
    std::optional<CudaOps> ops_;
    std::optional<MissServer> server_;
    std::optional<PromptStream> prompt_stream_;
    std::unique_ptr<expert_cache::ExpertCache> cache_;
    std::unique_ptr<PinnedMemory> logits_host_;
    std::map<GraphKey, std::unique_ptr<CudaGraph>> graphs_;
    RopeTables ropes_;
    std::vector<std::int64_t> positions_;
    std::uint64_t number_ = 0;
    std::int64_t tokens_seen_ = 0;
    DeviceMemoryUse use_;
    DeviceForwardStatistics statistics_;
};

CudaForward::CudaForward(const models::Model& model, ExpertPass& pass, DeviceForwardOptions options)
    : model_(model),
      options_(std::move(options)),
      device_(open_cuda_device(options_.device)),
      list_(collect_weights(model)),
      catalog_(model) {
    check_sizes(model, list_);
    device_->make_current();
    prepare_kernels(list_);
    const std::uint64_t free = device_->free_bytes();
    const std::uint64_t spare = free > kReserve ? free - kReserve : 0;
    const std::uint64_t budget = options_.memory_limit == 0 ? spare : std::min(options_.memory_limit, spare);
    options_.max_tokens = std::min(options_.max_tokens, kMostTokens);

    stream_ = device_->create_cuda_stream();
    pin_host_memory();
    weights_.emplace(*device_, list_);
    use_.dense_bytes = weights_->bytes();
    if (options_.pages > 0)
        pages_ = std::make_unique<DevicePages>(*device_, options_.pages * options_.page_bytes);
    page_base_ = pages_ ? pages_->base() : nullptr;
    use_.state_bytes = options_.pages * options_.page_bytes;

    arena_.emplace(*device_);
    const std::int64_t width = model.config.embedding;
    mailbox_.emplace(*device_, list_, options_.max_tokens, width, some_expert_reads_values(list_));
    residents_.emplace(*device_, *arena_, list_);
    link_.emplace(*device_, *arena_, list_, !registrations_.empty());
    ops_.emplace(CudaOps::Parts{*device_, *stream_, model_, list_, *weights_, *mailbox_, *residents_, *link_},
                 *arena_, options_.max_tokens, kLogitsRows, options_.context);
    const std::int64_t page_stride = pages_for(options_.context) + 1;
    const auto shape = [&](std::int64_t tokens, std::int64_t sequences) {
        return StepBlock::Shape{tokens, sequences, page_stride, ops_->residual_stride(), list_.ropes};
    };
    window_block_.emplace(*device_, *arena_, shape(kWindowTokens, kWindowTokens));
    long_block_.emplace(*device_, *arena_, shape(options_.max_tokens, kMostSequences));
    server_.emplace(list_, *mailbox_, *residents_, *link_, pass, options_.max_tokens, width);
    logits_host_ = device_->allocate_pinned(
        static_cast<std::uint64_t>(kLogitsRows * model.config.vocabulary) * sizeof(float));
    use_.workspace_bytes = arena_->bytes();

    const std::uint64_t used = use_.dense_bytes + use_.state_bytes + use_.workspace_bytes;
    if (used > budget) {
        fail(ErrorCode::OutOfMemory,
             "{} MiB of GPU memory are allowed, but the dense weights take {}, the context {} and the "
             "workspace {} MiB; "
             "use a smaller -c or -b, a larger --vram, or -ngl 0",
             budget >> 20, use_.dense_bytes >> 20, use_.state_bytes >> 20, use_.workspace_bytes >> 20);
    }
    if (has_experts()) {
        make_cache(budget - used);
        prompt_stream_.emplace(*device_, catalog_);
        measure_misses();
    }
}

CudaForward::~CudaForward() { drain(); }

void CudaForward::pin_host_memory() {
    for (const std::span<const std::byte> memory : options_.host_memory) {
        auto registration = device_->register_memory(memory);
        if (!registration) {
            log::warn(
                "{}: the system does not pin {} MiB of RAM; copies go through staging buffers (ulimit -l)",
                device_->info().name, memory.size() >> 20);
            registrations_.clear();
            return;
        }
        registrations_.push_back(std::move(registration));
    }
    if (!registrations_.empty()) catalog_.set_host_memory(expert_cache::HostMemory::Pinned);
}

void CudaForward::make_cache(std::uint64_t budget) {
    expert_cache::CacheOptions cache = options_.cache;
    if (cache.uploads.bytes_per_token == expert_cache::UploadOptions::kNoBudget) {
        cache.uploads.bytes_per_token = kUploadsPerToken * catalog_.largest_expert();
    }
    if (cache.slots.empty()) cache.bytes = {budget};
    cache_ = std::make_unique<expert_cache::ExpertCache>(
        std::vector<Device*>{device_.get()}, catalog_.shapes(),
        [this](expert_cache::ExpertKey key) { return catalog_.source(key); }, options_.policies, clock_,
        cache);
    for (int layer = 0; layer < catalog_.layers(); ++layer) {
        use_.slot_bytes += static_cast<std::uint64_t>(cache_->slots(0, layer)) * catalog_.layout(layer).bytes;
    }
    preload();
}

/// What the two ways to a missing expert cost here, so that each layer's misses go where they end first.
void CudaForward::measure_misses() {
    if (options_.miss_costs) return link_->set_costs(*options_.miss_costs);
    for (int layer = 0; layer < catalog_.layers(); ++layer) {
        if (link_->addresses(layer).gate == nullptr) continue;
        const MissCosts costs{.link = ops_->seconds_per_linked_expert(layer, *window_block_),
                              .cpu = server_->seconds_per_expert(layer),
                              .hand_off = kHandOffSeconds};
        link_->set_costs(costs);
        log::debug("{}: a missing expert takes {:.0f} us over the link, {:.0f} us on the CPU",
                   device_->info().name, 1e6 * costs.link, 1e6 * costs.cpu);
        return;
    }
}

/// The profile's experts, hottest first, and then whatever there is room for.
void CudaForward::preload() {
    std::vector<std::pair<float, expert_cache::ExpertKey>> ranking;
    for (int layer = 0; layer < catalog_.layers(); ++layer) {
        const std::int32_t experts = catalog_.shapes()[static_cast<std::size_t>(layer)].experts;
        const std::vector<float> uses = options_.profile != nullptr
                                            ? options_.profile->uses(layer)
                                            : std::vector<float>(static_cast<std::size_t>(experts), 0.0f);
        for (std::int32_t e = 0; e < experts; ++e)
            ranking.emplace_back(uses[static_cast<std::size_t>(e)], expert_cache::ExpertKey{layer, e});
    }
    std::stable_sort(ranking.begin(), ranking.end(), [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first > b.first : a.second.expert < b.second.expert;
    });
    std::vector<expert_cache::ExpertKey> hottest;
    for (const auto& [uses, key] : ranking) hottest.push_back(key);
    cache_->preload(hottest);
}

DeviceForwardStatistics CudaForward::statistics() {
    cuda::HandOffTimes times;
    device_->make_current();
    stream_->copy_to_host(std::as_writable_bytes(std::span(&times, 1)),
                          device_address(ops_->hand_off_times()));
    stream_->synchronise();
    DeviceForwardStatistics result = statistics_;
    result.posting_seconds = 1e-9 * static_cast<double>(times.posting);
    result.waiting_seconds = 1e-9 * static_cast<double>(times.waiting);
    result.reading_seconds = 1e-9 * static_cast<double>(times.reading);
    return result;
}

std::unique_ptr<PageMemory> CudaForward::take_pages() { return std::move(pages_); }

CudaOps::StepView CudaForward::view_of(const Step& step, const StepBlock& block) const {
    std::int64_t pages = 1;
    for (const StepSlice& slice : step.slices)
        pages = std::max(pages, pages_for(slice.position + slice.count));
    const auto tokens = static_cast<std::int64_t>(step.tokens.size());
    const auto logits = static_cast<std::int64_t>(step.logits_rows.size());
    return {&block, tokens, logits, logits == tokens, static_cast<std::int32_t>(pages)};
}

void CudaForward::step(const Step& step) {
    const auto entered = std::chrono::steady_clock::now();
    const double in_graphs = statistics_.step_seconds;
    const auto tokens = static_cast<std::int64_t>(step.tokens.size());
    COTERIE_CHECK(tokens > 0 && tokens <= options_.max_tokens);
    device_->make_current();
    if (!layout_) {
        layout_.emplace(step.slices[0].state->layout());
        ops_->set_state(*layout_, page_base_);
    }
    positions_.clear();
    for (const StepSlice& slice : step.slices) {
        for (std::int64_t i = 0; i < slice.count; ++i) positions_.push_back(slice.position + i);
    }
    ropes_.begin(positions_);
    const bool window =
        tokens <= kWindowTokens && static_cast<std::int64_t>(step.slices.size()) <= kWindowTokens;
    StepBlock& block = window ? *window_block_ : *long_block_;
    block.write(step, ++number_, model_.token_embedding, ropes_);
    const bool learns = tokens <= kLearningTokens && options_.learning == expert_cache::Learning::On;
    if (cache_) residents_->refresh(*cache_, *stream_);
    const bool streams = !window && tokens > kLearningTokens && prompt_stream_ && !residents_->complete() &&
                         prompt_stream_->begin(*cache_);
    std::optional<expert_cache::CacheStep> cache_step;
    try {
        if (cache_) {
            cache_step.emplace(
                cache_->begin_step(learns ? expert_cache::Learning::On : expert_cache::Learning::Off));
            residents_->refresh(*cache_, *stream_);
        }
        const CudaOps::StepView view = view_of(step, block);
        if (window) {
            run_window(view);
            consume(step, 0, view.logits);
        } else {
            run_long(step, view, streams);
        }
    } catch (...) {
        drain();
        if (prompt_stream_) prompt_stream_->end();
        throw;
    }
    ++statistics_.steps;
    learn(step, cache_step ? &*cache_step : nullptr);
    cache_step.reset();
    if (prompt_stream_) prompt_stream_->end();
    observe(step);
    if (window) statistics_.host_seconds += seconds_since(entered) - (statistics_.step_seconds - in_graphs);
}

void CudaForward::queue(const CudaOps::StepView& view) {
    ops_->begin(view);
    ops_->queue_begin();
    view.block->send(*stream_, view.tokens, ops_->residual());
    model_.forward(*ops_);
}

void CudaForward::run_window(const CudaOps::StepView& view) {
    CudaOps::StepView recorded = view;
    recorded.pages = 4;
    while (recorded.pages < view.pages) recorded.pages *= 2;
    auto& graph = graphs_[{view.tokens, view.logits, view.all_logits, recorded.pages}];
    if (!graph) {
        ops_->on_experts(nullptr, nullptr);
        graph = std::make_unique<CudaGraph>(*stream_, [&] {
            queue(recorded);
            if (view.logits > 0) {
                ops_->queue_logits(0, view.logits);
                copy_logits(view.logits);
            }
            ops_->queue_finish();
        });
    }
    const auto start = std::chrono::steady_clock::now();
    graph->launch(*stream_);
    serve(view.tokens);
    statistics_.step_seconds += seconds_since(start);
}

void CudaForward::run_long(const Step& step, const CudaOps::StepView& view, bool streams) {
    if (streams) {
        ops_->on_experts(
            [this](int layer) {
                statistics_.streamed_bytes += prompt_stream_->bring(layer, *residents_, *stream_);
            },
            [this](int) { prompt_stream_->consumed(*stream_); });
    } else {
        ops_->on_experts(nullptr, nullptr);
    }
    queue(view);
    ops_->queue_finish();
    serve(view.tokens);
    for (std::int64_t first = 0; first < view.logits; first += ops_->logits_rows()) {
        const std::int64_t count = std::min(ops_->logits_rows(), view.logits - first);
        ops_->queue_logits(first, count);
        copy_logits(count);
        stream_->synchronise();
        consume(step, first, count);
    }
}

void CudaForward::copy_logits(std::int64_t count) {
    const auto bytes = static_cast<std::size_t>(count * model_.config.vocabulary) * sizeof(float);
    stream_->copy_to_host(logits_host_->span().first(bytes), device_address(ops_->logits_buffer()));
}

void CudaForward::consume(const Step& step, std::int64_t first, std::int64_t count) const {
    const auto vocabulary = static_cast<std::size_t>(model_.config.vocabulary);
    const auto* logits = reinterpret_cast<const float*>(logits_host_->span().data());
    for (std::int64_t i = 0; i < count; ++i) {
        (*step.logits)(step.logits_rows[static_cast<std::size_t>(first + i)],
                       {logits + static_cast<std::size_t>(i) * vocabulary, vocabulary});
    }
}

void CudaForward::serve(std::int64_t tokens) {
    server_->serve(
        number_, tokens, cache_.get(), [this] { stream_->check(); }, statistics_);
}

void CudaForward::drain() noexcept {
    if (!server_) return;
    server_->release();
    try {
        stream_->synchronise();
    } catch (const Error& error) {
        log::warn("{}: {}", device_->info().name, error.what());
    }
    server_->recover();
}

void CudaForward::learn(const Step& step, expert_cache::CacheStep* cache_step) {
    const auto tokens = static_cast<std::int64_t>(step.tokens.size());
    tokens_seen_ += tokens;
    if (cache_step == nullptr) return;
    const bool counts = tokens <= kLearningTokens && options_.learning == expert_cache::Learning::On;
    for (int layer = 0; layer < catalog_.layers(); ++layer) {
        const models::MoeFfn* ffn = catalog_.layer(layer);
        if (ffn == nullptr) continue;
        const std::int64_t used = ffn->routing.used;
        const std::span<const std::int32_t> chosen(
            mailbox_->view().experts + layer * options_.max_tokens * used,
            static_cast<std::size_t>(tokens * used));
        statistics_.routed += chosen.size();
        cache_step->routed(layer, chosen, static_cast<std::int32_t>(used));
        if (!counts || options_.profile == nullptr) continue;
        for (std::size_t i = 0; i < chosen.size(); ++i) {
            options_.profile->used({layer, chosen[i]},
                                   tokens_seen_ - tokens + static_cast<std::int64_t>(i) / used);
        }
    }
}

/// The routing of all layers, once the step is over: nothing of it is on the host earlier.
void CudaForward::observe(const Step& step) const {
    if (step.observer == nullptr) return;
    const auto tokens = static_cast<std::int64_t>(step.tokens.size());
    for (int layer = 0; layer < catalog_.layers(); ++layer) {
        if (const models::MoeFfn* ffn = catalog_.layer(layer)) {
            const std::int64_t used = ffn->routing.used;
            const std::int64_t first = layer * options_.max_tokens * used;
            for (std::int64_t t = 0; t < tokens; ++t) {
                const auto count = static_cast<std::size_t>(used);
                step.observer->routed(layer, t, {mailbox_->view().experts + first + t * used, count},
                                      {mailbox_->view().weights + first + t * used, count});
            }
        }
        step.observer->layer_done(layer, nullptr, 0, 0);
    }
}

}  // namespace

std::unique_ptr<DeviceForward> make_device_forward(const models::Model& model, ExpertPass& pass,
                                                   DeviceForwardOptions options) {
    return std::make_unique<CudaForward>(model, pass, std::move(options));
}

}  // namespace coterie::engine
