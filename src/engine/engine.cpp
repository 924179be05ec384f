#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/forward/cpu_ops.h"
#include "engine/forward/device_forward.h"
#include "engine/offload.h"
#include "models/registry.h"

namespace coterie::engine {
namespace {

constexpr std::int64_t kDefaultContext = 4096;
constexpr std::int64_t kLogitsRows = 32;
/// Windows of a step on several GPUs: the first and the last one find some of them idle.
constexpr std::int64_t kPipelinedWindows = 8;

EngineOptions resolve(EngineOptions options, const models::ModelConfig& config) {
    options.context = context_or_default(options.context, config);
    if (options.context < 1 || options.batch < 1) {
        fail(ErrorCode::InvalidArgument, "context and batch must be at least 1, not {} and {}",
             options.context, options.batch);
    }
    options.batch = std::min(options.batch, options.context);
    const bool has_devices = options.offload.enabled() || !options.offload.gpus.empty();
    const std::int64_t window = has_devices ? options.window : 0;
    options.window = std::clamp(window, options.batch, options.context);
    return options;
}

std::int64_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
    return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

/// [layers]: `slots_per_layer` for each that has experts on the device.
std::vector<std::int32_t> equal_slots(const models::Model& model, const OffloadOptions& options) {
    std::vector<std::int32_t> slots;
    for (const models::Layer& layer : model.layers) {
        const auto* moe = std::get_if<models::MoeFfn>(&layer.ffn);
        const bool on_host = static_cast<std::int32_t>(slots.size()) < options.cache.first_layer;
        const std::int64_t experts = moe == nullptr || on_host ? 0 : moe->routing.experts;
        slots.push_back(static_cast<std::int32_t>(std::min<std::int64_t>(experts, options.slots_per_layer)));
    }
    return slots;
}

}  // namespace

std::int64_t context_or_default(std::int64_t context, const models::ModelConfig& config) {
    return context == 0 ? std::min(kDefaultContext, config.context) : context;
}

struct Engine::Compute {
    Compute(const models::Model& model, const EngineOptions& options)
        : threads(options.threads),
          ops(threads, model.workspace, model.extents,
              {.max_tokens = options.window, .max_logits_rows = std::min(kLogitsRows, options.window)}) {
        if (!options.offload.enabled()) return;
        const DeviceLimits largest{options.window, options.window * assignments_per_token(model)};
        offload.emplace(model, ops, threads, largest, options.offload);
    }

    /// Tokens of each step of a prompt of which `tokens` are still to be read.
    std::int64_t prompt_step(std::int64_t tokens, const EngineOptions& options) {
        if (device) return longest_step(options);
        if (!offload || tokens <= options.batch) return options.batch;
        return offload->plan_window(tokens, options.batch);
    }

    std::int64_t longest_step(const EngineOptions& options) const {
        const bool pipelined = device && device->devices() > 1;
        return pipelined ? kPipelinedWindows * options.window : options.window;
    }

    static std::int64_t assignments_per_token(const models::Model& model) {
        return model.extents.experts_used + 1;
    }

    /// Runs steps on GPUs from now on; gives the memory that its KV cache of `pages` pages lies in.
    std::unique_ptr<PageMemory> add_device(const models::Model& model, const EngineOptions& options,
                                           const StateLayout& layout, std::uint64_t pages,
                                           const gguf::Archive& archive);

    void step(const models::Model& model, const Step& step) {
        if (device) return device->step(step);
        ops.begin(step);
        model.forward(ops);
    }

    ThreadPool threads;
    CpuOps ops;
    std::optional<Offload> offload;
    std::optional<expert_cache::RoutingProfile> profile;  ///< of the GPU's steps
    std::unique_ptr<DeviceForward> device;
};

std::unique_ptr<PageMemory> Engine::Compute::add_device(const models::Model& model,
                                                        const EngineOptions& options,
                                                        const StateLayout& layout, std::uint64_t pages,
                                                        const gguf::Archive& archive) {
    const OffloadOptions& offload_options = options.offload;
    profile = offload_options.profile;
    DeviceForwardOptions forward{.devices = offload_options.gpus,
                                 .split = offload_options.gpu_split,
                                 .memory_limits = offload_options.gpu_memory_limits,
                                 .max_tokens = options.window,
                                 .context = options.context,
                                 .layout = &layout,
                                 .pages = pages,
                                 .host_memory = {},
                                 .miss_costs = offload_options.miss_costs,
                                 .policies = {},
                                 .cache = offload_options.cache,
                                 .learning = offload_options.learning,
                                 .profile = profile ? &*profile : nullptr};
    forward.policies = [this, name = offload_options.policy](std::int32_t layer, std::int32_t experts,
                                                             std::int32_t slots) {
        const std::vector<float> uses = profile ? profile->uses(layer) : std::vector<float>();
        return expert_cache::make_policy(name, {.experts = experts, .slots = slots, .profile = uses});
    };
    if (offload_options.slots_per_layer > 0) {
        forward.cache.slots = {equal_slots(model, offload_options)};
    }
    if (offload_options.pins_host_memory) {
        for (const gguf::File& file : archive.files()) forward.host_memory.push_back(file.bytes());
    }
    device = make_device_forward(model, ops.expert_pass(), std::move(forward));
    return device->take_pages();
}

/// The devices' part of a step; it ends whether the step succeeds or not.
class Engine::DeviceStep {
  public:
    DeviceStep(Compute& compute, const models::Model& model, std::size_t tokens) : compute_(compute) {
        if (!compute_.offload) return;
        const auto count = static_cast<std::int64_t>(tokens);
        compute_.offload->experts().begin_step(count, count * Compute::assignments_per_token(model),
                                               compute_.offload->options().learning);
    }
    ~DeviceStep() {
        if (compute_.offload) compute_.offload->experts().end_step();
    }
    DeviceStep(const DeviceStep&) = delete;
    DeviceStep& operator=(const DeviceStep&) = delete;

  private:
    Compute& compute_;
};

std::int64_t Sequence::truncate(std::int64_t n) {
    const std::int64_t kept = state_.truncate(std::clamp<std::int64_t>(n, 0, length()));
    tokens_.resize(static_cast<std::size_t>(kept));
    return kept;
}

void Sequence::abandon_step() { tokens_.resize(static_cast<std::size_t>(state_.abandon_step())); }

Sequence Sequence::fork() const {
    Sequence copy(state_.fork());
    copy.tokens_ = tokens_;
    return copy;
}

Engine::Engine(std::shared_ptr<const gguf::Archive> archive, const EngineOptions& options)
    : archive_(std::move(archive)), model_(models::build_model(*archive_)) {
    options_ = resolve(options, model_->config);
    layout_.emplace(model_->state_layout(options_.cache));
    // One page more than the context needs: a fork of a partly filled page is copied before it is written.
    const auto pages = static_cast<std::uint64_t>(pages_for(options_.context)) + 1;
    try {
        compute_ = std::make_unique<Compute>(*model_, options_);
    } catch (const std::bad_alloc&) {
        fail(ErrorCode::OutOfMemory, "{}: no memory for steps of {} tokens; use a smaller -b or --window",
             archive_->name(), options_.window);
    }
    if (!options_.offload.gpus.empty()) {
        pool_ = std::make_unique<BlockPool>(
            layout_->page_bytes(), compute_->add_device(*model_, options_, *layout_, pages, *archive_));
    } else {
        pool_ = std::make_unique<BlockPool>(layout_->page_bytes(), pages * layout_->page_bytes());
    }
    last_logits_.resize(static_cast<std::size_t>(model_->config.vocabulary));
}

Engine::~Engine() = default;

void Engine::load(LoadProgress progress) const {
    const std::uint64_t total = archive_->total_bytes();
    // RAM has no room for what devices hold: what is needed of the file comes when it is used.
    if (compute_->offload && compute_->offload->options().exclusive_ram_bytes) return progress(total, total);
    archive_->prefault([&](std::uint64_t done) { progress(done, total); });
}

Offload* Engine::offload() { return compute_->offload ? &*compute_->offload : nullptr; }

DeviceForward* Engine::device() { return compute_->device.get(); }

expert_cache::RoutingProfile* Engine::profile() {
    if (compute_->offload) return compute_->offload->profile();
    return compute_->profile ? &*compute_->profile : nullptr;
}

void Engine::request_ended() {
    if (compute_->offload) compute_->offload->between_requests();
}

std::int64_t Engine::prompt_grid() const { return compute_->device ? kPageTokens : 1; }

std::int64_t Engine::longest_step() const { return compute_->longest_step(options_); }

int Engine::threads() const { return compute_->threads.size(); }

Sequence Engine::make_sequence() {
    return Sequence(SequenceState(*layout_, *pool_, {.snapshot_limit = options_.snapshots}));
}

void Engine::check_tokens(std::span<const TokenId> tokens) const {
    for (const TokenId token : tokens) {
        if (token >= 0 && token < model_->config.vocabulary) continue;
        fail(ErrorCode::InvalidArgument, "token {} is outside the model's vocabulary of {}", token,
             model_->config.vocabulary);
    }
}

std::vector<StepSlice> Engine::prepare(std::span<const Slice> slices) {
    step_tokens_.clear();
    logits_rows_.clear();
    std::vector<StepSlice> prepared;
    prepared.reserve(slices.size());
    for (const Slice& slice : slices) {
        check_tokens(slice.tokens);
        const auto count = static_cast<std::int64_t>(slice.tokens.size());
        const auto first = static_cast<std::int64_t>(step_tokens_.size());
        if (!slice.sequence->state_.prepare(count)) {
            fail(ErrorCode::OutOfMemory,
                 "the context of {} tokens is full; use a larger -c or a shorter prompt", options_.context);
        }
        prepared.push_back({&slice.sequence->state_, slice.sequence->length(), first, count});
        step_tokens_.insert(step_tokens_.end(), slice.tokens.begin(), slice.tokens.end());
        for (std::int64_t i = slice.logits == Slice::Logits::All ? 0 : count - 1; i < count; ++i) {
            if (slice.logits != Slice::Logits::None) logits_rows_.push_back(first + i);
        }
    }
    COTERIE_CHECK(static_cast<std::int64_t>(step_tokens_.size()) <= longest_step());
    return prepared;
}

void Engine::step(std::span<const Slice> slices, LogitsConsumer consumer, StepObserver* observer) {
    const std::vector<StepSlice> prepared = prepare(slices);
    const Step step{.tokens = step_tokens_,
                    .slices = prepared,
                    .logits_rows = logits_rows_,
                    .logits = &consumer,
                    .observer = observer};
    try {
        const DeviceStep devices(*compute_, *model_, step_tokens_.size());
        compute_->step(*model_, step);
    } catch (...) {
        for (const Slice& slice : slices) slice.sequence->abandon_step();
        throw;
    }
    for (const Slice& slice : slices) {
        slice.sequence->state_.advance(static_cast<std::int64_t>(slice.tokens.size()));
        slice.sequence->tokens_.insert(slice.sequence->tokens_.end(), slice.tokens.begin(),
                                       slice.tokens.end());
    }
}

std::span<const float> Engine::extend(Sequence& sequence, std::span<const TokenId> tokens,
                                      StepObserver* observer, ExtendProgress progress) {
    COTERIE_CHECK(!tokens.empty());
    check_tokens(tokens);
    const auto total = static_cast<std::int64_t>(tokens.size());
    const std::int64_t held = common_prefix(sequence.tokens(), tokens);
    if (held < sequence.length() || held == total) sequence.truncate(std::min(held, total - 1));
    const std::int64_t first = sequence.length();
    const std::int64_t grid = prompt_grid();
    const std::int64_t most =
        observer != nullptr && observer->wants_whole_steps() ? window() : longest_step();
    const std::int64_t step_tokens = std::min(compute_->prompt_step(total - first, options_), most);
    progress(first, first, total);
    for (std::int64_t done = first; done < total; done = sequence.length()) {
        std::int64_t count = std::min(step_tokens, total - done);
        if (count < total - done && done + count >= (done / grid + 1) * grid) count -= (done + count) % grid;
        const Slice slice{
            .sequence = &sequence,
            .tokens = tokens.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(count)),
            .logits = done + count == total ? Slice::Logits::Last : Slice::Logits::None};
        step(
            {&slice, 1},
            [&](std::int64_t, std::span<const float> logits) {
                std::copy(logits.begin(), logits.end(), last_logits_.begin());
            },
            observer);
        progress(first, done + count, total);
    }
    return last_logits_;
}

}  // namespace coterie::engine
