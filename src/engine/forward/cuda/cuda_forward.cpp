#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/log.h"
#include "engine/forward/cuda/cuda_stage.h"
#include "engine/forward/cuda/device_pages.h"
#include "engine/forward/device_forward.h"
#include "engine/forward/hybrid/expert_catalog.h"
#include "engine/forward/layer_split.h"
#include "engine/forward/step_parts.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace coterie::engine {
namespace {

constexpr std::int64_t kLearningTokens = 32;  ///< steps up to here teach the cache
constexpr std::int64_t kMostTokens = 16384;   ///< that a stage takes at a time
constexpr std::int64_t kSmallestPart = 512;   ///< of a prompt that is cut for several stages
/// Multiply-adds of a layer's experts that a slow CPU does well within the time that a GPU waits for it
/// (kPatienceNanoseconds).
constexpr std::int64_t kHostWork = 20'000'000'000;
constexpr int kPollsPerCheck = 1 << 14;
constexpr std::uint64_t kReserve = std::uint64_t{512}
                                   << 20;  ///< of a device's free memory that is left alone

/// Experts that a token may bring over the link beside the step: what the CPU reads for misses comes from the
/// same RAM.
constexpr std::uint64_t kUploadsPerToken = 2;

void pause() {
#if defined(__x86_64__)
    _mm_pause();
#endif
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Dense weights, experts, and the keys and values of a layer; the output's weights are the last layer's.
std::vector<std::uint64_t> bytes_of_layers(const models::Model& model, const ExpertCatalog& catalog,
                                           const StateLayout& layout, std::uint64_t pages) {
    std::vector<std::uint64_t> bytes;
    const std::uint64_t state = layout.page_bytes() * pages / static_cast<std::uint64_t>(layout.layers());
    for (int layer = 0; layer < catalog.layers(); ++layer) {
        const auto& shape = catalog.shapes()[static_cast<std::size_t>(layer)];
        bytes.push_back(total_bytes(collect_weights(model, {layer, layer + 1})) + state +
                        static_cast<std::uint64_t>(shape.experts) * shape.expert_bytes);
    }
    return bytes;
}

/// So many tokens of a prompt that the CPU may be asked for all of a layer's experts.
std::int64_t tokens_for_host(const models::Model& model) {
    std::int64_t most = 1;
    for (const models::Layer& layer : model.layers) {
        const auto* ffn = std::get_if<models::MoeFfn>(&layer.ffn);
        if (ffn == nullptr) continue;
        const auto size = [](const models::ExpertMatrix& matrix) { return matrix.rows * matrix.columns; };
        most = std::max(most, ffn->routing.used * (size(ffn->gate) + size(ffn->up) + size(ffn->down)));
    }
    return std::max(kHostWork / most / kPageTokens, std::int64_t{1}) * kPageTokens;
}

/// Steps as a pipeline of stages, one a GPU.
class CudaForward final : public DeviceForward {
  public:
    CudaForward(const models::Model& model, ExpertPass& pass, DeviceForwardOptions options);
    ~CudaForward() override { drain(); }

    std::unique_ptr<PageMemory> take_pages() override { return std::move(pages_); }
    void step(const Step& step) override;
    expert_cache::ExpertCache* cache() override { return cache_.get(); }
    int devices() const override { return static_cast<int>(stages_.size()); }
    DeviceMemoryUse memory_use(int device) const override { return stage(device).memory_use(); }
    std::string device_name(int device) const override { return stage(device).device().info().name; }
    DeviceForwardStatistics statistics() override;
    bool reads_host_memory() const override { return !registrations_.empty(); }

  private:
    const CudaStage& stage(int i) const { return *stages_[static_cast<std::size_t>(i)]; }
    void open_devices();
    std::uint64_t budget_of(std::size_t device) const;
    void pin_host_memory();
    void make_stages();
    void make_cache();
    void preload();
    bool learns(std::size_t tokens) const;
    std::int64_t part_tokens(const Step& step) const;
    void run(const Step& step, expert_cache::CacheStep* cache_step);
    bool may_begin(std::size_t stage) const;
    void finish_part(std::size_t stage, const Step& step, expert_cache::CacheStep* cache_step);
    void learn(const CudaStage& stage, int part, bool counts, expert_cache::CacheStep& cache_step);
    void observe(const CudaStage& stage, int part) const;
    void drain() noexcept;

    const models::Model& model_;
    ExpertPass& pass_;
    DeviceForwardOptions options_;
    SteadyClock clock_;
    ExpertCatalog catalog_;
    const std::int64_t tokens_for_host_;
    std::vector<std::unique_ptr<CudaDevice>> devices_;
    std::vector<std::uint64_t> budgets_;
    std::vector<std::unique_ptr<HostRegistration>> registrations_;
    std::unique_ptr<DevicePages> pages_;
    std::vector<std::unique_ptr<CudaStage>> stages_;
    std::unique_ptr<expert_cache::ExpertCache> cache_;
    StepParts parts_;
    std::vector<int> begun_;      ///< [stages]: parts of the step
    std::uint64_t number_ = 0;    ///< of parts so far
    std::int64_t positions_ = 0;  ///< tokens of all steps before this one
    double step_seconds_ = 0;
    double host_seconds_ = 0;
};

CudaForward::CudaForward(const models::Model& model, ExpertPass& pass, DeviceForwardOptions options)
    : model_(model),
      pass_(pass),
      options_(std::move(options)),
      catalog_(model),
      tokens_for_host_(tokens_for_host(model)) {
    options_.max_tokens = std::min(options_.max_tokens, kMostTokens);
    open_devices();
    pin_host_memory();
    make_stages();
    if (catalog_.empty()) return;
    make_cache();
    for (const auto& stage : stages_) stage->measure_misses(options_.miss_costs);
}

void CudaForward::open_devices() {
    if (options_.devices.size() > model_.layers.size()) {
        fail(ErrorCode::InvalidArgument, "{} GPUs for {} layers; name fewer with --device",
             options_.devices.size(), model_.layers.size());
    }
    for (const int index : options_.devices) {
        devices_.push_back(open_cuda_device(index));
        budgets_.push_back(budget_of(devices_.size() - 1));
    }
}

std::uint64_t CudaForward::budget_of(std::size_t device) const {
    const std::uint64_t free = devices_[device]->free_bytes();
    const std::uint64_t spare = free > kReserve ? free - kReserve : 0;
    const std::uint64_t limit = device < options_.memory_limits.size() ? options_.memory_limits[device] : 0;
    return limit == 0 ? spare : std::min(limit, spare);
}

/// For all devices: one of them is asked.
void CudaForward::pin_host_memory() {
    for (const std::span<const std::byte> memory : options_.host_memory) {
        auto registration = devices_.front()->register_memory(memory);
        if (!registration) {
            log::warn(
                "{}: the system does not pin {} MiB of RAM; copies go through staging buffers (ulimit -l)",
                devices_.front()->info().name, memory.size() >> 20);
            registrations_.clear();
            return;
        }
        registrations_.push_back(std::move(registration));
    }
    if (!registrations_.empty()) catalog_.set_host_memory(expert_cache::HostMemory::Pinned);
}

void CudaForward::make_stages() {
    std::vector<double> shares = options_.split;
    if (shares.empty()) shares.assign(budgets_.begin(), budgets_.end());
    if (options_.pages > 0)
        pages_ = std::make_unique<DevicePages>(options_.layout->page_bytes(), options_.pages);
    const auto ranges =
        split_layers(bytes_of_layers(model_, catalog_, *options_.layout, options_.pages), shares);
    for (std::size_t i = 0; i < devices_.size(); ++i) {
        const CudaStage::Parts parts{model_, catalog_, pass_, i == 0 ? nullptr : stages_.back().get()};
        stages_.push_back(
            std::make_unique<CudaStage>(parts, *devices_[i], ranges[i], options_, pages_.get(), budgets_[i]));
    }
    begun_.resize(stages_.size());
}

void CudaForward::make_cache() {
    expert_cache::CacheOptions cache = options_.cache;
    if (cache.uploads.bytes_per_token == expert_cache::UploadOptions::kNoBudget) {
        cache.uploads.bytes_per_token = kUploadsPerToken * catalog_.largest_expert();
    }
    const bool sized = !cache.slots.empty();
    if (sized) cache.slots.assign(stages_.size(), options_.cache.slots.front());
    std::vector<Device*> devices;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
        const LayerRange layers = stages_[i]->layers();
        devices.push_back(devices_[i].get());
        if (!sized) cache.bytes.push_back(stages_[i]->slot_budget());
        cache.layers.push_back({layers.begin, layers.end});
        for (int layer = 0; sized && layer < catalog_.layers(); ++layer) {
            if (!layers.contains(layer)) cache.slots[i][static_cast<std::size_t>(layer)] = 0;
        }
    }
    cache_ = std::make_unique<expert_cache::ExpertCache>(
        std::move(devices), catalog_.shapes(),
        [this](expert_cache::ExpertKey key) { return catalog_.source(key); }, options_.policies, clock_,
        cache);
    for (std::size_t i = 0; i < stages_.size(); ++i)
        stages_[i]->use_cache(*cache_, static_cast<std::int32_t>(i));
    preload();
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
    DeviceForwardStatistics result;
    result.step_seconds = step_seconds_;
    result.host_seconds = host_seconds_;
    for (const auto& stage : stages_) {
        result.devices.push_back(stage->counts());
        result.all += result.devices.back();
    }
    return result;
}

bool CudaForward::learns(std::size_t tokens) const {
    return tokens <= kLearningTokens && options_.learning == expert_cache::Learning::On;
}

/// A prompt on several GPUs is cut, so that all of them have work; and where the CPU computes what is
/// missing, so that no GPU loses patience with it. Not where somebody is to see the whole step's layers.
std::int64_t CudaForward::part_tokens(const Step& step) const {
    if (step.observer != nullptr && step.observer->wants_whole_steps()) return options_.max_tokens;
    std::int64_t most = options_.max_tokens;
    if (std::any_of(stages_.begin(), stages_.end(), [](const auto& stage) { return stage->asks_host(); }))
        most = std::min(most, tokens_for_host_);
    if (stages_.size() == 1) return most;
    const auto each = static_cast<std::int64_t>((step.tokens.size() + stages_.size() - 1) / stages_.size());
    return std::min(std::max(pages_for(each) * kPageTokens, kSmallestPart), most);
}

void CudaForward::step(const Step& step) {
    const auto entered = std::chrono::steady_clock::now();
    const double in_windows = step_seconds_;
    std::optional<expert_cache::CacheStep> cache_step;
    try {
        const bool prompt = step.tokens.size() > kLearningTokens;
        for (const auto& stage : stages_) prompt ? stage->borrow() : stage->refresh();
        parts_.split(step, part_tokens(step));
        if (cache_) {
            cache_step.emplace(cache_->begin_step(learns(step.tokens.size()) ? expert_cache::Learning::On
                                                                             : expert_cache::Learning::Off));
            for (const auto& stage : stages_) stage->refresh();
        }
        run(step, cache_step ? &*cache_step : nullptr);
    } catch (...) {
        drain();
        throw;
    }
    positions_ += static_cast<std::int64_t>(step.tokens.size());
    cache_step.reset();
    for (const auto& stage : stages_) stage->give_back();
    if (step.tokens.size() <= kWindowTokens)
        host_seconds_ += seconds_since(entered) - (step_seconds_ - in_windows);
}

/// A stage takes the next part once the stage before has it in its queue; and not before the next stage has
/// taken the part before, whose rows would be overwritten on their way.
bool CudaForward::may_begin(std::size_t stage) const {
    const int next = begun_[stage];
    if (stages_[stage]->busy() || next == parts_.size()) return false;
    if (stage > 0 && begun_[stage - 1] <= next) return false;
    return stage + 1 == stages_.size() || begun_[stage + 1] == next;
}

void CudaForward::run(const Step& step, expert_cache::CacheStep* cache_step) {
    const auto start = std::chrono::steady_clock::now();
    const ThreadPool::Awake awake(pass_.pool());
    std::fill(begun_.begin(), begun_.end(), 0);
    const std::uint64_t first_number = number_ + 1;
    number_ += static_cast<std::uint64_t>(parts_.size());
    for (const auto& stage : stages_) stage->prepare(parts_[0], first_number);
    int done = 0;
    for (int polls = 1; done < parts_.size(); ++polls) {
        for (std::size_t s = 0; s < stages_.size(); ++s) {
            CudaStage& stage = *stages_[s];
            if (may_begin(s)) {
                const int part = begun_[s]++;
                if (part > 0) stage.prepare(parts_[part], first_number + static_cast<std::uint64_t>(part));
                stage.begin();
            }
            if (!stage.busy()) continue;
            if (polls % kPollsPerCheck == 0) stage.check();
            // In the order of the stages, also where both have ended since the last look.
            if (s > 0 && stages_[s - 1]->busy() && begun_[s - 1] == begun_[s]) continue;
            if (!stage.poll()) continue;
            finish_part(s, step, cache_step);
            if (s + 1 == stages_.size()) ++done;
        }
        pause();
    }
    if (step.tokens.size() <= kWindowTokens) step_seconds_ += seconds_since(start);
}

void CudaForward::finish_part(std::size_t s, const Step& step, expert_cache::CacheStep* cache_step) {
    CudaStage& stage = *stages_[s];
    const int part = begun_[s] - 1;
    if (cache_step != nullptr) learn(stage, part, learns(step.tokens.size()), *cache_step);
    if (step.observer != nullptr) observe(stage, part);
    if (s + 1 == stages_.size()) stage.take_logits(parts_.first_row(part));
    stage.end();
}

void CudaForward::learn(const CudaStage& stage, int part, bool counts, expert_cache::CacheStep& cache_step) {
    for (int layer = stage.layers().begin; layer < stage.layers().end; ++layer) {
        const models::MoeFfn* ffn = catalog_.layer(layer);
        if (ffn == nullptr) continue;
        const std::int64_t used = ffn->routing.used;
        const std::span<const std::int32_t> chosen = stage.experts(layer);
        cache_step.routed(layer, chosen, static_cast<std::int32_t>(used));
        if (!counts || options_.profile == nullptr) continue;
        const std::int64_t first = positions_ + parts_.first_row(part);
        for (std::size_t i = 0; i < chosen.size(); ++i)
            options_.profile->used({layer, chosen[i]}, first + static_cast<std::int64_t>(i) / used);
    }
}

/// The routing of a stage's layers, once the part is over: nothing of it is on the host earlier.
void CudaForward::observe(const CudaStage& stage, int part) const {
    const Step step = parts_[part];
    const auto tokens = static_cast<std::int64_t>(step.tokens.size());
    for (int layer = stage.layers().begin; layer < stage.layers().end; ++layer) {
        if (const models::MoeFfn* ffn = catalog_.layer(layer)) {
            const auto used = static_cast<std::size_t>(ffn->routing.used);
            for (std::int64_t t = 0; t < tokens; ++t) {
                const std::size_t first = static_cast<std::size_t>(t) * used;
                step.observer->routed(layer, parts_.first_row(part) + t,
                                      stage.experts(layer).subspan(first, used),
                                      stage.weights(layer).subspan(first, used));
            }
        }
        step.observer->layer_done(layer, nullptr, 0, 0);
    }
}

void CudaForward::drain() noexcept {
    for (const auto& stage : stages_) stage->release();
    for (const auto& stage : stages_) stage->drain();
    for (const auto& stage : stages_) stage->give_back();
}

}  // namespace

DeviceCounts& DeviceCounts::operator+=(const DeviceCounts& other) {
    missed += other.missed;
    cpu_bytes += other.cpu_bytes;
    layers_with_misses += other.layers_with_misses;
    cpu_seconds += other.cpu_seconds;
    posting_seconds += other.posting_seconds;
    waiting_seconds += other.waiting_seconds;
    reading_seconds += other.reading_seconds;
    streamed_bytes += other.streamed_bytes;
    return *this;
}

std::unique_ptr<DeviceForward> make_device_forward(const models::Model& model, ExpertPass& pass,
                                                   DeviceForwardOptions options) {
    return std::make_unique<CudaForward>(model, pass, std::move(options));
}

}  // namespace coterie::engine
