#include "engine/offload.h"

#include <algorithm>

#include "base/error.h"
#include "base/page_out.h"
#include "engine/forward/hybrid/fake_device_experts.h"
#include "engine/prompt_window.h"
#include "expert_cache/placement/slot_trade.h"
#include "expert_cache/slots/shares.h"

namespace coterie::engine {
namespace {

/// Assumed where nothing was measured: what one core's integer kernels reach, two channels of RAM, and a
/// small card's memory and arithmetic for fake devices.
constexpr double kCpuFlopsPerThread = 40e9;
constexpr double kCpuReadRate = 20e9;
constexpr double kDeviceFlops = 10e12;
constexpr double kDeviceReadRate = 300e9;
constexpr double kInstantRate = 1e15;  ///< of a link that takes no time
constexpr double kHandoffSeconds = 10e-6;

double or_instant(double rate) { return rate > 0 ? rate : kInstantRate; }

double flops_per_row(const models::MoeFfn& ffn) {
    return 2.0 * static_cast<double>(ffn.gate.rows * ffn.gate.columns + ffn.up.rows * ffn.up.columns +
                                     ffn.down.rows * ffn.down.columns);
}

const models::MoeFfn& any_layer(const ExpertCatalog& catalog) {
    for (int layer = 0; layer < catalog.layers(); ++layer) {
        if (const models::MoeFfn* ffn = catalog.layer(layer)) return *ffn;
    }
    fail(ErrorCode::InvalidArgument,
         "this model has no routed experts that a device could hold; run it without "
         "--fake-gpu");
}

Nanoseconds nanoseconds(double seconds) {
    return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
}

FakeDeviceExperts::Shape shape_of(const models::Model& model, const ExpertCatalog& catalog,
                                  const DeviceLimits& largest) {
    const std::int64_t small = std::min(kDecodeTokens, largest.tokens);
    return {.input_width = model.config.embedding,
            .output_width = model.config.embedding,
            .largest_hidden = catalog.largest_hidden(),
            .small = {small, small * model.config.experts_used},
            .largest = largest};
}

}  // namespace

std::uint64_t Offload::overhead_bytes(const models::Model& model, std::int64_t batch) {
    const ExpertCatalog catalog(model);
    const std::uint64_t granule = FakeDeviceSpec{}.granularity_bytes;
    return FakeDeviceExperts::buffer_bytes(shape_of(model, catalog, {batch, batch})) +
           granule * static_cast<std::uint64_t>(catalog.layers() + 2);
}

Offload::WindowBytes Offload::window_bytes(const models::Model& model) {
    const ExpertCatalog catalog(model);
    const DeviceLimits token{1, model.extents.experts_used + 1};
    const std::uint64_t device = FakeDeviceExperts::large_bytes(shape_of(model, catalog, token), token);
    const auto outputs = static_cast<std::uint64_t>(token.assignments * model.config.embedding);
    return {.device = device,
            .pinned = device,
            .ram = outputs * sizeof(float),
            .ring = PromptRing::bytes(catalog.largest_expert())};
}

Offload::Offload(const models::Model& model, CpuOps& ops, ThreadPool& pool, const DeviceLimits& largest,
                 OffloadOptions options)
    : options_(std::move(options)),
      largest_(largest),
      window_bytes_(window_bytes(model)),
      facts_(placement_facts(model, {.cache = {}, .batch = largest.tokens, .snapshots = 0})),
      catalog_(model) {
    any_layer(catalog_);
    COTERIE_CHECK(!options_.costs ||
                  options_.costs->kinds.size() == static_cast<std::size_t>(catalog_.kind_count()));
    Clock& clock = options_.clock != nullptr ? *options_.clock : steady_clock_;
    machine_ = std::make_unique<FakeMachine>(clock, options_.fake_devices, options_.ram_rate);
    std::vector<std::unique_ptr<DeviceExperts>> devices = make_devices(model);
    make_cache();
    hybrid_ = std::make_unique<HybridExperts>(
        HybridExperts::Parts{
            .pool = pool,
            .pass = ops.expert_pass(),
            .catalog = catalog_,
            .cache = *cache_,
            .devices = std::move(devices),
            .costs = options_.costs ? *options_.costs : assumed_costs(pool.size()),
            .measures_costs = options_.measures_costs,
            .prefetch = options_.prefetch,
            .profile = options_.profile && options_.trains_profile ? &*options_.profile : nullptr},
        largest, model.config.embedding);
    ops.attach(hybrid_.get());
    preload();
}

std::vector<std::unique_ptr<DeviceExperts>> Offload::make_devices(const models::Model& model) {
    const FakeDeviceExperts::Shape shape = shape_of(model, catalog_, largest_);
    const double row_seconds = flops_per_row(any_layer(catalog_)) / kDeviceFlops;
    std::vector<std::unique_ptr<DeviceExperts>> devices;
    for (int i = 0; i < machine_->size(); ++i) {
        const double rate = options_.fake_devices[static_cast<std::size_t>(i)].memory_rate;
        const double read_rate = rate > 0 ? rate : kDeviceReadRate;
        const auto duration = [=](std::uint64_t bytes, std::int64_t tokens) {
            return nanoseconds(
                std::max(static_cast<double>(bytes) / read_rate, static_cast<double>(tokens) * row_seconds));
        };
        devices.push_back(std::make_unique<FakeDeviceExperts>(machine_->device(i), shape, duration));
    }
    return devices;
}

expert_cache::Costs Offload::assumed_costs(int threads) const {
    expert_cache::Costs costs;
    costs.kinds.resize(static_cast<std::size_t>(catalog_.kind_count()));
    costs.cpu = {.read_bytes_per_second = options_.ram_rate > 0 ? options_.ram_rate : kCpuReadRate,
                 .handoff_seconds = 0,
                 .compute = std::vector<expert_cache::ComputeCosts>(costs.kinds.size())};
    std::vector<expert_cache::ComputeCosts> device_compute(costs.kinds.size());
    for (int layer = 0; layer < catalog_.layers(); ++layer) {
        const models::MoeFfn* ffn = catalog_.layer(layer);
        if (ffn == nullptr) continue;
        const auto kind = static_cast<std::size_t>(catalog_.kinds()[static_cast<std::size_t>(layer)]);
        costs.kinds[kind] = ffn->gate.name;
        costs.cpu.compute[kind].row_seconds = flops_per_row(*ffn) / (kCpuFlopsPerThread * threads);
        device_compute[kind].row_seconds = flops_per_row(*ffn) / kDeviceFlops;
    }
    for (const FakeDeviceSpec& spec : options_.fake_devices) {
        const double link = or_instant(spec.link_rate);
        costs.devices.push_back(
            {.link_bytes_per_second = link,
             .contended_link_bytes_per_second = link,
             .copy_seconds = std::chrono::duration<double>(spec.latency).count(),
             .memory_bytes_per_second = spec.memory_rate > 0 ? spec.memory_rate : kDeviceReadRate,
             .handoff_seconds = kHandoffSeconds,
             .compute = device_compute});
    }
    costs.ram_bytes_per_second = costs.cpu.read_bytes_per_second;
    check_costs(costs, "the assumed costs");
    return costs;
}

/// For each layer the places in RAM that its experts need beside what its slots hold, or their part of what
/// there is.
std::vector<std::int32_t> Offload::host_places(const expert_cache::CacheOptions& cache,
                                               std::uint64_t bytes) const {
    std::vector<expert_cache::Share> shares;
    for (int l = 0; l < catalog_.layers(); ++l) {
        const expert_cache::LayerShape& shape = catalog_.shapes()[static_cast<std::size_t>(l)];
        std::int32_t residents = 0;
        for (const auto& slots : cache.slots) {
            const std::int32_t all = slots[static_cast<std::size_t>(l)];
            residents += all - expert_cache::spare_of(all, cache.spare_slots, expert_cache::Complete::No);
        }
        const std::int32_t missing = std::max(shape.experts - residents, 0);
        shares.push_back({.weight = static_cast<double>(missing) * static_cast<double>(shape.expert_bytes),
                          .slot_bytes = shape.expert_bytes,
                          .capacity = missing});
    }
    expert_cache::share_out(shares, bytes, 1);
    std::vector<std::int32_t> places;
    for (const expert_cache::Share& share : shares) places.push_back(share.slots);
    return places;
}

void Offload::make_cache() {
    expert_cache::CacheOptions cache = options_.cache;
    std::vector<Device*> devices;
    for (int i = 0; i < machine_->size(); ++i) {
        devices.push_back(&machine_->device(i));
        const std::uint64_t free = machine_->device(i).free_bytes();
        const std::uint64_t limit = options_.memory_limit == 0 ? free : std::min(free, options_.memory_limit);
        if (options_.slots_per_layer > 0) {
            std::vector<std::int32_t> slots;
            for (const auto& shape : catalog_.shapes())
                slots.push_back(std::min(shape.experts, options_.slots_per_layer));
            cache.slots.push_back(slots);
        } else if (options_.cache.slots.empty() && options_.cache.bytes.empty()) {
            cache.bytes.push_back(limit);
        }
    }
    if (options_.exclusive_ram_bytes) {
        cache.host_places = host_places(cache, *options_.exclusive_ram_bytes);
    }
    const expert_cache::PolicyFactory policies = [this](std::int32_t layer, std::int32_t experts,
                                                        std::int32_t slots) {
        const std::vector<float> uses =
            options_.profile ? options_.profile->uses(layer) : std::vector<float>();
        return expert_cache::make_policy(options_.policy,
                                         {.experts = experts, .slots = slots, .profile = uses});
    };
    cache_ = std::make_unique<expert_cache::ExpertCache>(
        std::move(devices), catalog_.shapes(),
        [this](expert_cache::ExpertKey key) { return catalog_.source(key); }, policies, machine_->clock(),
        cache);
}

std::int64_t Offload::plan_window(std::int64_t tokens, std::int64_t batch) const {
    if (largest_.tokens <= batch || options_.windows == OffloadOptions::Windows::Fixed) {
        return largest_.tokens;
    }
    std::vector<std::uint64_t> slot_bytes;
    for (const auto& device : cache_->statistics().devices) slot_bytes.push_back(device.mapped_bytes);
    const auto lent = lendable_bytes(slot_bytes, window_bytes_.ring,
                                     window_bytes_.device * static_cast<std::uint64_t>(batch));
    if (!lent) return batch;
    std::vector<std::int32_t> missing;
    for (int layer = 0; layer < catalog_.layers(); ++layer) missing.push_back(missing_experts(layer));
    std::vector<expert_cache::WindowLayer> layers;
    const expert_cache::WindowPlan plan = expert_cache::plan_window(
        window_problem(facts_, hybrid_->costs(), missing, expert_cache::DensePlace::Cpu,
                       {.prompt_tokens = tokens,
                        .most_tokens = largest_.tokens,
                        .bytes_per_token = window_bytes_.device,
                        .lent_bytes = *lent},
                       layers));
    return std::max(plan.tokens, batch);
}

void Offload::between_requests() {
    cache_->restore();
    const std::uint64_t tokens = cache_->statistics().tokens;
    const bool learns = options_.learning == expert_cache::Learning::On && options_.profile.has_value();
    if (!learns || options_.rebalance_tokens == 0) return;
    if (tokens - balanced_tokens_ < options_.rebalance_tokens) return;
    balanced_tokens_ = tokens;
    rebalance();
}

void Offload::rebalance() {
    expert_cache::SlotTrade trade(facts_.model, usage(), hybrid_->costs(), options_.cache.spare_slots);
    for (std::int32_t d = 0; d < machine_->size(); ++d) {
        std::vector<std::int32_t> slots;
        for (std::int32_t l = 0; l < catalog_.layers(); ++l) slots.push_back(cache_->slots(d, l));
        trade.add_device(std::move(slots));
    }
    if (const auto better = trade.better()) cache_->rebalance(*better);
}

expert_cache::UsageCounts Offload::usage() const {
    expert_cache::UsageCounts counts;
    for (int layer = 0; layer < catalog_.layers(); ++layer) {
        const std::vector<float> uses = options_.profile->uses(layer);
        const auto experts = catalog_.shapes()[static_cast<std::size_t>(layer)].experts;
        counts.emplace_back(uses.begin(), uses.begin() + experts);
    }
    return counts;
}

std::int32_t Offload::missing_experts(int layer) const {
    std::int32_t missing = 0;
    for (std::int32_t e = 0; e < catalog_.shapes()[static_cast<std::size_t>(layer)].experts; ++e) {
        missing += cache_->find({layer, e}) ? 0 : 1;
    }
    return missing;
}

std::vector<expert_cache::ExpertKey> Offload::hottest_first(Unused unused) const {
    std::vector<std::pair<float, expert_cache::ExpertKey>> ranking;
    for (int layer = 0; layer < catalog_.layers(); ++layer) {
        const std::vector<float> uses =
            options_.profile ? options_.profile->uses(layer) : std::vector<float>();
        for (std::int32_t e = 0; e < catalog_.shapes()[static_cast<std::size_t>(layer)].experts; ++e) {
            const float used = uses.empty() ? 0 : uses[static_cast<std::size_t>(e)];
            ranking.emplace_back(used, expert_cache::ExpertKey{layer, e});
        }
    }
    std::stable_sort(ranking.begin(), ranking.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<expert_cache::ExpertKey> hottest;
    for (const auto& [uses, key] : ranking) {
        if (uses > 0 || unused == Unused::Too) hottest.push_back(key);
    }
    return hottest;
}

void Offload::preload() {
    const bool all = options_.fills_slots || options_.exclusive_ram_bytes;
    cache_->preload(hottest_first(all ? Unused::Too : Unused::LeftOut));
    if (!options_.exclusive_ram_bytes) return;
    cache_->fill_ram(hottest_first(Unused::Too));
    for (const expert_cache::ExpertKey key : hottest_first(Unused::Too)) {
        if (!cache_->find(key) && cache_->in_ram(key) == nullptr) continue;
        for (const auto& piece : catalog_.source(key).pieces) page_out(piece);
    }
}

}  // namespace coterie::engine
