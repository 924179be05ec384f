#include "expert_cache/expert_cache.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "expert_cache/live/admission.h"
#include "expert_cache/live/cache_state.h"
#include "expert_cache/live/eviction.h"
#include "expert_cache/live/maintenance.h"
#include "expert_cache/live/reshaping.h"
#include "expert_cache/slots/shares.h"

namespace coterie::expert_cache {
namespace {

StepLog& log_of(CacheState& state, std::int32_t place) { return state.logs[static_cast<std::size_t>(place)]; }

/// Under the cache's lock.
void count_uses(CacheState& state, StepLog& log) {
    state.misses += std::exchange(log.uses_of[0], 0);
    for (std::size_t d = 0; d < state.devices.size(); ++d) {
        state.devices[d]->counts.hits += std::exchange(log.uses_of[d + 1], 0);
        state.devices[d]->counts.paid_back += std::exchange(log.paid_back[d], 0);
    }
}

void learn_from_step(CacheState& state, std::int32_t place) {
    state.epochs.renew(place);  // reads nothing any more, but the log is still its own
    StepLog& log = log_of(state, place);
    log.forget_reads();
    {
        const std::lock_guard lock(state.mutex);
        count_uses(state, log);
        tidy(state);
        learn(state, log);
        state.tokens += log.tokens;
        for (const auto& device : state.devices) device->uploader.grant(log.tokens);
    }
}

/// A device gets the sizes that it is to have, but for what it lends.
void apply_wanted(CacheState& state, DeviceCache& device) {
    if (device.out.load() || device.slots.loan_bytes() > 0) return;
    shrink_to(state, device, device.wanted);
    grow_to_wanted(state, device);
}

/// The slots that each layer is to have on all devices together.
void tell_policies(CacheState& state) {
    const std::lock_guard lock(state.mutex);
    for (std::int32_t layer = 0; layer < state.layer_count(); ++layer) {
        const auto index = static_cast<std::size_t>(layer);
        if (state.layers[index].experts == 0) continue;
        std::int32_t slots = 0;
        for (const auto& device : state.devices) slots += device->lost.load() ? 0 : device->wanted[index];
        state.policy(layer).resized(std::min(slots, state.layers[index].experts));
    }
}

std::vector<Share> shares_of(const CacheState& state, const DeviceCache& device) {
    std::vector<Share> shares;
    std::uint64_t all = 0;
    for (const std::int32_t slots : device.wanted) all += static_cast<std::uint64_t>(slots);
    const CacheOptions::Layers own = state.layers_of(device);
    for (std::int32_t l = 0; l < state.layer_count(); ++l) {
        const auto index = static_cast<std::size_t>(l);
        const auto slots = static_cast<double>(device.wanted[index]);
        const auto bytes = static_cast<double>(device.slots.slot_bytes(l));
        const bool has = state.layers[index].experts > 0 && l >= own.begin && l < own.end;
        // Where there are no shares yet, all layers get the same.
        shares.push_back({.weight = has ? (all > 0 ? slots * bytes : 1.0) : 0.0,
                          .slot_bytes = device.slots.slot_bytes(l),
                          .capacity = state.layers[index].experts});
    }
    return shares;
}

enum class Preload { Settled, Later };

/// Later: there is a slot, but the queue to it is full.
Preload queue_preload(CacheState& state, ExpertKey key) {
    const std::lock_guard lock(state.mutex);
    if (upload_into_room(state, key) || state.residency.find(key)) return Preload::Settled;
    const bool full = std::any_of(state.devices.begin(), state.devices.end(), [&](const auto& device) {
        return state.has_room(*device, key.layer) && device->uploader.room() == 0;
    });
    return full ? Preload::Later : Preload::Settled;
}

DeviceStatistics statistics_of(const DeviceCache& device) {
    DeviceStatistics result = device.counts;
    result.lost = device.lost.load();
    result.out = device.out.load();
    for (std::int32_t l = 0; l < device.slots.layers(); ++l) {
        result.resident += static_cast<std::uint64_t>(device.slots.count(l, SlotState::Resident));
    }
    result.mapped_bytes = device.slots.mapped_bytes();
    return result;
}

/// Notes what one token chose in one layer.
class RoutedToken {
  public:
    RoutedToken(CacheState& state, StepLog& log, std::int32_t layer)
        : state_(state),
          log_(log),
          layer_(layer),
          entries_(state.residency.layer(layer)),
          reads_(log.reads.layer(layer)) {}

    void note(std::int32_t token, std::span<const std::int32_t> experts) {
        log_.tokens = std::max(log_.tokens, token + 1);
        while (!experts.empty()) {
            if (log_.room() == 0) make_room();
            const auto run = experts.first(std::min(experts.size(), log_.room()));
            const std::uint64_t missed = look_up(run);
            if (log_.learns) log_.add_run(layer_, token, run, missed);
            experts = experts.subspan(run.size());
        }
    }

  private:
    /// Bit i: the i-th expert is not resident.
    std::uint64_t look_up(std::span<const std::int32_t> experts) {
        std::uint64_t missed = 0;
        for (std::size_t i = 0; i < experts.size(); ++i) {
            log_.read(reads_, experts[i]);
            const ResidencyEntry::Use use = entries_[experts[i]].use();
            ++log_.uses_of[static_cast<std::size_t>(use.place)];
            if (use.first) ++log_.paid_back[static_cast<std::size_t>(use.place - 1)];
            missed |= std::uint64_t{use.place == 0} << i;
        }
        return missed;
    }
    void make_room() {
        const std::lock_guard lock(state_.mutex);
        learn(state_, log_);
    }

    CacheState& state_;
    StepLog& log_;
    const std::int32_t layer_;
    ResidencyEntry* const entries_;
    const std::span<std::atomic<std::uint64_t>> reads_;
};

}  // namespace

CacheStep::~CacheStep() {
    if (!state_) return;
    try {
        learn_from_step(*state_, slot_);
    } catch (const std::exception& error) {
        log::error("the expert cache stops learning: {}", error.what());
    }
    state_->epochs.end(slot_);
    wake_thread(*state_);
}

void CacheStep::routed(std::int32_t layer, std::span<const std::int32_t> experts, std::int32_t per_token) {
    RoutedToken routed(*state_, log_of(*state_, slot_), layer);
    std::int32_t token = 0;
    while (!experts.empty()) {
        const std::size_t count = std::min(static_cast<std::size_t>(per_token), experts.size());
        routed.note(token++, experts.first(count));
        experts = experts.subspan(count);
    }
}

std::optional<DeviceAddress> CacheStep::fetch(ExpertKey key, std::int32_t device, Stream& stream) {
    const std::lock_guard lock(state_->mutex);
    return start_fetch(*state_, key, device, stream);
}

bool CacheStep::prefetch(ExpertKey key) {
    {
        const std::lock_guard lock(state_->mutex);
        if (!upload_ahead(*state_, key)) return false;
    }
    wake_thread(*state_);
    return true;
}

void CacheStep::refresh() {
    state_->epochs.renew(slot_);
    log_of(*state_, slot_).forget_reads();
    const std::lock_guard lock(state_->mutex);
    tidy(*state_);
}

MemoryLoan::~MemoryLoan() {
    if (!state_) return;
    try {
        DeviceCache& device = state_->at(device_);
        const std::lock_guard reshaping(state_->reshaping);
        {
            const std::lock_guard lock(state_->mutex);
            device.slots.unmap_loan();
        }
        apply_wanted(*state_, device);
    } catch (const std::exception& error) {
        log::error("memory lent by the expert cache does not come back: {}", error.what());
    }
}

ExpertCache::ExpertCache(std::vector<Device*> devices, std::vector<LayerShape> layers, ExpertSource source,
                         const PolicyFactory& policies, Clock& clock, const CacheOptions& options)
    : state_(std::make_unique<CacheState>(devices, std::move(layers), std::move(source), policies, clock,
                                          options)) {
    if (options.maintenance == Maintenance::Thread) start_thread(*state_);
}

ExpertCache::~ExpertCache() {
    stop_thread(*state_);
    for (const auto& device : state_->devices) device->uploader.cancel_all();
    try {
        maintain_until_idle(*state_, state_->options.uploads.watchdog);
    } catch (const std::exception& error) {
        log::error("the expert cache ends badly: {}", error.what());
    }
}

std::optional<ResidentExpert> ExpertCache::find(ExpertKey key) const {
    const auto place = state_->residency.find(key);
    if (!place) return std::nullopt;
    return ResidentExpert{.device = place->device,
                          .address = state_->at(place->device).slots.address(key.layer, place->slot)};
}

void ExpertCache::find(std::int32_t layer, std::span<const std::int32_t> experts,
                       std::span<ResidentExpert> found) const {
    const ResidencyEntry* entries = state_->residency.layer(layer);
    for (std::size_t i = 0; i < experts.size(); ++i) {
        const ResidencyEntry::Spot spot = entries[experts[i]].spot();
        found[i].device = spot.device;
        if (state_->devices.empty()) continue;
        const SlotTable& slots = state_->at(std::max(spot.device, 0)).slots;  // of any, where there is none
        found[i].address = slots.address(layer, spot.slot);
    }
}

void ExpertCache::residents(std::int32_t device, std::int32_t layer,
                            std::span<std::uint64_t> addresses) const {
    const ResidencyEntry* entries = state_->residency.layer(layer);
    const SlotTable& slots = state_->at(device).slots;
    for (std::size_t e = 0; e < addresses.size(); ++e) {
        const auto place = entries[e].find();
        const bool here = place && place->device == device;
        addresses[e] = here ? static_cast<std::uint64_t>(slots.address(layer, place->slot)) : 0;
    }
}

std::uint32_t ExpertCache::version() const { return state_->residency.version(); }

std::optional<ExpertLease> ExpertCache::acquire(ExpertKey key) const {
    while (const auto place = state_->residency.find(key)) {
        SlotTable& table = state_->at(place->device).slots;
        table.pin(key.layer, place->slot);
        if (state_->residency.find(key) == place) {
            return ExpertLease(table, key.layer, place->slot,
                               {.device = place->device, .address = table.address(key.layer, place->slot)});
        }
        table.unpin(key.layer, place->slot);
    }
    return std::nullopt;
}

bool ExpertCache::exclusive() const { return state_->host != nullptr; }

const std::byte* ExpertCache::in_ram(ExpertKey key) const {
    return state_->host ? state_->host->find(key) : nullptr;
}

HostExpert ExpertCache::bytes_of(ExpertKey key) const { return state_->bytes_of(key); }

bool ExpertCache::wanted(ExpertKey key) const { return state_->residency.wanted(key); }

std::int32_t ExpertCache::free_slots(std::int32_t device, std::int32_t layer) const {
    const DeviceCache& of = state_->at(device);
    return of.out.load() ? 0 : of.slots.count(layer, SlotState::Free);
}

CacheStep ExpertCache::begin_step(Learning learning) {
    const std::int32_t place = state_->epochs.begin();
    log_of(*state_, place).begin(learning == Learning::On);
    return CacheStep(*state_, place);
}

void ExpertCache::preload(std::span<const ExpertKey> hottest_first) {
    for (const auto& device : state_->devices) device->uploader.ignore_budget(true);
    for (const ExpertKey key : hottest_first) {
        COTERIE_CHECK(state_->residency.contains(key));
        while (queue_preload(*state_, key) == Preload::Later) {
            maintain_once(*state_);
            wait_a_little(*state_);
        }
    }
    maintain_until_idle(*state_, Nanoseconds::max());
    for (const auto& device : state_->devices) device->uploader.ignore_budget(false);
}

void ExpertCache::fill_ram(std::span<const ExpertKey> hottest_first) {
    COTERIE_CHECK(state_->host != nullptr);
    for (const ExpertKey key : hottest_first) {
        const std::lock_guard lock(state_->mutex);
        if (state_->residency.find(key) || state_->host->find(key) != nullptr) continue;
        const auto place = state_->host->claim(key);
        if (!place) continue;
        std::span<std::byte> to = state_->host->bytes_of(key.layer, *place);
        for (const auto& piece : state_->source(key).pieces) {
            std::copy(piece.begin(), piece.end(), to.begin());
            to = to.subspan(piece.size());
        }
        state_->host->publish(key.layer, *place);
    }
}

bool ExpertCache::maintain() { return maintain_once(*state_); }

bool ExpertCache::settle(Nanoseconds limit) { return maintain_until_idle(*state_, limit); }

CpuReading& ExpertCache::cpu_reading() { return state_->reading; }

std::optional<MemoryLoan> ExpertCache::borrow(std::int32_t device, std::uint64_t bytes) {
    DeviceCache& of = state_->at(device);
    const std::lock_guard reshaping(state_->reshaping);
    if (of.out.load() || of.slots.loan_bytes() > 0) return std::nullopt;
    std::optional<std::vector<std::int32_t>> targets;
    {
        const std::lock_guard lock(state_->mutex);
        const std::uint64_t granularity = of.device.mapping_granularity();
        targets = targets_without(of, (bytes + granularity - 1) / granularity * granularity);
    }
    if (!targets) return std::nullopt;
    std::optional<DeviceAddress> address;
    if (shrink_to(*state_, of, *targets)) {
        const std::lock_guard lock(state_->mutex);
        address = of.slots.map_loan(bytes);
    }
    if (!address) {
        grow_to_wanted(*state_, of);
        return std::nullopt;
    }
    return MemoryLoan(*state_, device, *address, of.slots.loan_bytes());
}

std::uint64_t ExpertCache::resize(std::int32_t device, std::uint64_t bytes) {
    DeviceCache& of = state_->at(device);
    const std::lock_guard reshaping(state_->reshaping);
    std::vector<Share> shares = shares_of(*state_, of);
    share_out(shares, bytes, of.device.mapping_granularity());
    for (std::size_t l = 0; l < shares.size(); ++l) of.wanted[l] = shares[l].slots;
    apply_wanted(*state_, of);
    tell_policies(*state_);
    const std::lock_guard lock(state_->mutex);
    return of.slots.mapped_bytes();
}

void ExpertCache::rebalance(const std::vector<std::vector<std::int32_t>>& slots) {
    COTERIE_CHECK(slots.size() == state_->devices.size());
    const std::lock_guard reshaping(state_->reshaping);
    for (std::int32_t d = 0; d < state_->device_count(); ++d) {
        DeviceCache& of = state_->at(d);
        COTERIE_CHECK(slots[static_cast<std::size_t>(d)].size() == of.wanted.size());
        of.wanted = slots[static_cast<std::size_t>(d)];
        for (std::int32_t l = 0; l < state_->layer_count(); ++l) {
            std::int32_t& wanted = of.wanted[static_cast<std::size_t>(l)];
            wanted = std::clamp(wanted, 0, of.slots.capacity(l));
        }
        apply_wanted(*state_, of);
    }
    tell_policies(*state_);
}

void ExpertCache::restore() {
    const std::lock_guard reshaping(state_->reshaping);
    for (const auto& device : state_->devices) {
        if (!device->out.load() && device->slots.loan_bytes() == 0) grow_to_wanted(*state_, *device);
    }
}

CopyTimes ExpertCache::take_copy_times(std::int32_t device, RamUse ram) {
    return state_->at(device).uploader.take_times(ram);
}

std::int32_t ExpertCache::slots(std::int32_t device, std::int32_t layer) const {
    const std::lock_guard lock(state_->mutex);
    return state_->at(device).slots.slots(layer);
}

CacheStatistics ExpertCache::statistics() const {
    const std::lock_guard lock(state_->mutex);
    CacheStatistics result{.tokens = static_cast<std::uint64_t>(state_->tokens),
                           .hits = 0,
                           .misses = state_->misses,
                           .devices = {}};
    for (const auto& device : state_->devices) {
        result.devices.push_back(statistics_of(*device));
        result.hits += result.devices.back().hits;
    }
    return result;
}

}  // namespace coterie::expert_cache
