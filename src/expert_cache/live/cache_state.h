#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <semaphore>
#include <thread>
#include <vector>

#include "devices/device.h"
#include "expert_cache/backoff.h"
#include "expert_cache/cache_options.h"
#include "expert_cache/cache_statistics.h"
#include "expert_cache/expert_key.h"
#include "expert_cache/live/step_log.h"
#include "expert_cache/slots/host_store.h"
#include "expert_cache/slots/layer_bits.h"
#include "expert_cache/slots/layer_shape.h"
#include "expert_cache/slots/residency.h"
#include "expert_cache/slots/slot_table.h"
#include "expert_cache/slots/step_epochs.h"
#include "expert_cache/uploads/cpu_reading.h"
#include "expert_cache/uploads/host_expert.h"
#include "expert_cache/uploads/uploader.h"

namespace coterie::expert_cache {

/// A copy that a step has put into its own stream.
struct Fetch {
    std::unique_ptr<Event> done;
    ExpertKey key{};
    std::int32_t slot = 0;
    Nanoseconds started{0};
    bool under_way = false;
    bool refused = false;  ///< part of it; the slot is given back when the rest is over
};

struct RetiredSlot {
    std::int32_t layer;
    std::int32_t slot;
    bool returned = false;  ///< its expert is back in RAM, or cannot be
};

// A device that keeps failing only slows everything down.
inline constexpr Nanoseconds kFirstRetry = std::chrono::milliseconds(100);
inline constexpr Nanoseconds kLongestRetry = std::chrono::minutes(1);

/// An evicted expert on its way back to RAM. Its slot is Retiring until it is there.
struct Return {
    std::unique_ptr<Event> done;
    ExpertKey key{};
    std::int32_t slot = 0;
    std::int32_t place = 0;  ///< of the HostStore
    Nanoseconds started{0};
    bool under_way = false;
};

/// One device's part of the cache.
struct DeviceCache {
    DeviceCache(Device& of, std::int32_t number, std::span<const LayerShape> layers, const Clock& clock,
                const CpuReading& reading, const UploadOptions& options);

    ~DeviceCache();

    Device& device;
    const std::int32_t device_number;  ///< in the cache
    SlotTable slots;
    Uploader uploader;
    std::unique_ptr<Stream> stream;        ///< poison, and moves from slot to slot
    std::unique_ptr<Event> maintained;     ///< all that `stream` writes into slots is done
    std::vector<std::int32_t> fill_limit;  ///< [layers]: slots that may be filled, the spare ones left out
    std::vector<std::int32_t> wanted;      ///< [layers] slots when nothing is lent
    std::vector<RetiredSlot> retired;      ///< reserved once
    std::vector<Fetch> fetches;
    std::int32_t fetches_under_way = 0;
    std::vector<Return> returns;  ///< of exclusive residency
    std::int32_t returns_under_way = 0;
    std::atomic<bool> out{false};   ///< holds nothing and takes nothing: lost, or until it is tried again
    std::atomic<bool> lost{false};  ///< out for good
    bool shrinking = false;         ///< experts are being moved out of its last slots
    Backoff retry{kFirstRetry.count(), kLongestRetry.count()};  ///< nanoseconds of the cache's clock
    LayerBits residents;                                        ///< the experts of Resident slots
    bool overfull = true;     ///< some layer may have more residents than its fill limit
    DeviceStatistics counts;  ///< hits: of steps that have ended
    std::int32_t failures_in_a_row = 0;
};

/// All that the parts of a running cache share. What may be touched without `mutex` is atomic or says so.
///
/// Locks are taken in this order: `reshaping` (one change of sizes at a time), `pumping` (one round of
/// maintenance at a time), `mutex` (the state; held for microseconds, never over a copy of bytes or a wait).
struct CacheState {
    CacheState(const std::vector<Device*>& given, std::vector<LayerShape> shapes, ExpertSource bytes_of,
               const PolicyFactory& factory, Clock& time, const CacheOptions& chosen);

    std::int32_t layer_count() const { return static_cast<std::int32_t>(layers.size()); }
    std::int32_t device_count() const { return static_cast<std::int32_t>(devices.size()); }
    DeviceCache& at(std::int32_t device) { return *devices[static_cast<std::size_t>(device)]; }
    Policy& policy(std::int32_t layer) { return *policies[static_cast<std::size_t>(layer)]; }
    /// Whom an arriving expert is to replace; -1: nobody.
    std::int32_t& victim_of(ExpertKey key) {
        return victims[static_cast<std::size_t>(key.layer)][static_cast<std::size_t>(key.expert)];
    }
    /// Where an expert's bytes stand in RAM: its place, or the model's file.
    HostExpert bytes_of(ExpertKey key) const;
    /// Whose experts a device may hold.
    CacheOptions::Layers layers_of(const DeviceCache& device) const;
    /// After slots were added or taken away, or a device went out or came
    /// back.
    void set_fill_limits();
    /// Whether a device has a slot that an expert may take without another's leaving.
    bool has_room(const DeviceCache& device, std::int32_t layer) const;

    const std::vector<LayerShape> layers;
    const ExpertSource source;
    Clock& clock;
    const CacheOptions options;
    CpuReading reading;
    std::unique_ptr<HostStore> host;  ///< of exclusive residency, or null
    Residency residency;
    StepEpochs epochs;

    std::mutex reshaping;
    std::mutex pumping;
    mutable std::mutex mutex;
    std::vector<std::unique_ptr<DeviceCache>> devices;
    std::vector<std::unique_ptr<Policy>> policies;
    std::vector<std::vector<std::int32_t>> victims;  ///< [layers][experts]
    LayerBits arriving;                              ///< a slot is Filling for these
    LayerBits doomed;                                ///< an arriving expert is to replace these
    LayerBits considered;                            ///< for admission, while a step is learnt from
    std::int64_t tokens = 0;
    std::int64_t last_token = 0;               ///< that a policy has seen
    std::uint64_t rounds = 0;                  ///< of learning
    std::vector<std::int32_t> candidates;      ///< scratch
    std::vector<std::uint64_t> may_go;         ///< scratch: words of one layer's experts
    std::vector<UploadResult> upload_results;  ///< scratch of who holds `pumping`

    std::vector<StepLog> logs;  ///< [StepEpochs::kSteps], each used by its step
    std::uint64_t misses = 0;   ///< of steps that have ended

    // The thread of Maintenance::Thread sleeps on `wake` while nothing is under way.
    std::atomic<bool> woken{false};
    std::atomic<bool> stopping{false};
    std::binary_semaphore wake{0};
    std::thread thread;
};

}  // namespace coterie::expert_cache
