#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "devices/device.h"
#include "expert_cache/cache_options.h"
#include "expert_cache/cache_statistics.h"
#include "expert_cache/expert_key.h"
#include "expert_cache/slots/expert_lease.h"
#include "expert_cache/slots/layer_shape.h"
#include "expert_cache/uploads/cpu_reading.h"
#include "expert_cache/uploads/host_expert.h"
#include "expert_cache/uploads/uploader.h"

namespace coterie::expert_cache {

struct CacheState;

enum class Learning {
    On,
    Off,  ///< the step's routing is counted as hits and misses, but moves nothing: prompts, benchmarks
};

/// One pass through the model. While it lives, no byte changes of an expert that `find` or `fetch` gave, and
/// none of its own experts is evicted. It ends when it goes: after the devices have done all its work.
/// Used by one thread; several steps may live at once, up to 16.
class CacheStep {
  public:
    CacheStep(CacheStep&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)), slot_(other.slot_) {}
    CacheStep& operator=(CacheStep&& other) noexcept {
        std::swap(state_, other.state_);
        std::swap(slot_, other.slot_);
        return *this;
    }
    ~CacheStep();

    /// The experts that a layer's router chose: `per_token` for each token, token after token. Before `find`.
    /// Neither locks nor allocates; what follows from it happens at the step's end.
    void routed(std::int32_t layer, std::span<const std::int32_t> experts, std::int32_t per_token);

    /// Copies an expert that is not resident into a spare slot of `device`, in the order of `stream`: work
    /// queued there after this call reads it at the address given. It stays in the cache. Nothing where there
    /// is no spare slot, the expert is on its way already, or the device refuses: the CPU then computes it.
    /// If the copy fails on its way, so does `stream` (devices/device.h).
    std::optional<DeviceAddress> fetch(ExpertKey key, std::int32_t device, Stream& stream);

    /// Starts to upload an expert that will be needed soon, in place of the coldest one if need be. False
    /// where it is here or on its way already, all others are worth more, or the queue is full. Locks.
    bool prefetch(ExpertKey key);

    /// The step reads nothing any more of what it was given so far, as between the layers of a prompt. Lets
    /// go of slots that were replaced since.
    void refresh();

  private:
    friend class ExpertCache;
    CacheStep(CacheState& state, std::int32_t slot) : state_(&state), slot_(slot) {}

    CacheState* state_;
    std::int32_t slot_;
};

/// A stretch of device memory that the coldest slots lent; the cache grows back when it goes.
class MemoryLoan {
  public:
    MemoryLoan(MemoryLoan&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)),
          device_(other.device_),
          address_(other.address_),
          bytes_(other.bytes_) {}
    MemoryLoan& operator=(MemoryLoan&& other) noexcept {
        std::swap(state_, other.state_);
        std::swap(device_, other.device_);
        std::swap(address_, other.address_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~MemoryLoan();

    DeviceAddress address() const { return address_; }
    std::uint64_t bytes() const { return bytes_; }

  private:
    friend class ExpertCache;
    MemoryLoan(CacheState& state, std::int32_t device, DeviceAddress address, std::uint64_t bytes)
        : state_(&state), device_(device), address_(address), bytes_(bytes) {}

    CacheState* state_;
    std::int32_t device_;
    DeviceAddress address_;
    std::uint64_t bytes_;
};

/// The experts that devices hold, while a model runs.
///
/// A table names the device and slot of each resident expert; reading it takes no lock. What was routed feeds
/// one policy a layer, which admits experts and chooses victims; an admitted expert is copied into a spare
/// slot, then the table is flipped, and the victim's slot becomes free when no step and no lease reads it.
/// Any expert may be on any device: a free slot first, else the device whose victim the policy names.
///
/// A copy that fails leaves its expert to the CPU. A device that is lost leaves the cache with one line in
/// the log; its steps' streams fail, and everything goes on from RAM. One that keeps refusing or failing
/// leaves for a while that grows, and comes back empty.
///
/// Thread-safe. Steps, leases and loans must go before the cache, the devices and the clock after it.
class ExpertCache {
  public:
    ExpertCache(std::vector<Device*> devices, std::vector<LayerShape> layers, ExpertSource source,
                const PolicyFactory& policies, Clock& clock, const CacheOptions& options);
    ~ExpertCache();

    /// Where an expert is resident now. Lock-free; valid until the running step ends.
    std::optional<ResidentExpert> find(ExpertKey key) const;
    /// The same of several experts of a layer; `found`: [experts], device -1 (and any address)
    /// where there is none.
    void find(std::int32_t layer, std::span<const std::int32_t> experts,
              std::span<ResidentExpert> found) const;
    /// The same of a whole layer for one device: [experts] addresses, 0 where the expert is not there.
    void residents(std::int32_t device, std::int32_t layer, std::span<std::uint64_t> addresses) const;
    /// Changes whenever an answer of `find` or `residents` may have changed; to be read before them.
    std::uint32_t version() const;
    /// The same for longer than a step.
    std::optional<ExpertLease> acquire(ExpertKey key) const;
    /// Whether RAM holds only what no device does.
    bool exclusive() const;
    /// With exclusive residency, where RAM holds an expert, gate, up and down one after the other; null where
    /// it does not. Lock-free; valid until the running step ends.
    const std::byte* in_ram(ExpertKey key) const;
    /// From where a device may copy an expert now: RAM, or the model's file. Valid until the running step
    /// ends.
    HostExpert bytes_of(ExpertKey key) const;
    /// Whether the expert was admitted when it was last missed, but found no way in: a fetch is worth more
    /// then. Lock-free.
    bool wanted(ExpertKey key) const;
    /// How many fetches a step could make now.
    std::int32_t free_slots(std::int32_t device, std::int32_t layer) const;

    CacheStep begin_step(Learning learning = Learning::On);

    /// Loads experts until the slots are full, the spare ones left out, and waits for it.
    void preload(std::span<const ExpertKey> hottest_first);
    /// With exclusive residency: copies what no device holds into RAM, as far as there is room.
    void fill_ram(std::span<const ExpertKey> hottest_first);
    /// One round: frees, uploads, publishes. Whether anything is still under way.
    bool maintain();
    /// Maintains until nothing is under way; false where that takes longer than `limit`.
    bool settle(Nanoseconds limit);
    /// For whoever reads experts from RAM: `CpuReading::Scope scope(cache.cpu_reading());`
    CpuReading& cpu_reading();

    // Outside steps of the calling thread, which would wait for itself.

    /// At least `bytes` of contiguous memory, for a prompt's buffers; one loan a device at a time. Nothing
    /// where slots and leases do not let go in time or the device has no such memory.
    std::optional<MemoryLoan> borrow(std::int32_t device, std::uint64_t bytes);
    /// Gives a device's slots this much memory, by the layers' shares. Returns what they have then.
    std::uint64_t resize(std::int32_t device, std::uint64_t bytes);
    /// Changes the shares: [devices][layers] slots. Coldest experts go, the others stay.
    void rebalance(const std::vector<std::vector<std::int32_t>>& slots);
    /// Gives layers the slots back that they lack since a device refused memory or was out for a while.
    void restore();

    /// Uploads' copies since the last call, for measured costs.
    CopyTimes take_copy_times(std::int32_t device, RamUse ram);

    std::int32_t slots(std::int32_t device, std::int32_t layer) const;
    CacheStatistics statistics() const;
    /// Throws Internal unless table, slots and memory agree.
    void check_integrity() const;

  private:
    std::unique_ptr<CacheState> state_;
};

}  // namespace coterie::expert_cache
