#pragma once

#include <memory>

#include "devices/fake_device.h"
#include "engine/forward/cpu_ops.h"
#include "engine/forward/hybrid/hybrid_experts.h"
#include "engine/offload_options.h"
#include "engine/placement_facts.h"

namespace coterie::engine {

/// A model's experts on devices: devices, cache and hybrid execution, made together at start.
class Offload {
  public:
    /// Throws InvalidArgument where the model has no routed experts, OutOfMemory where a device is too small
    /// for its buffers. Everything given must outlive it.
    Offload(const models::Model& model, CpuOps& ops, ThreadPool& pool, const DeviceLimits& largest,
            OffloadOptions options);

    /// Memory of each device that is not for slots: buffers of decode-class layers, and what mapping in whole
    /// granules leaves unused.
    static std::uint64_t overhead_bytes(const models::Model& model, std::int64_t batch);

    /// What each token of a prompt's window takes besides the model's own workspace.
    struct WindowBytes {
        std::uint64_t device;  ///< of each device's slots, lent
        std::uint64_t pinned;  ///< of RAM, for each device
        std::uint64_t ram;     ///< for the CPU's part
        std::uint64_t ring;    ///< of each device's slots, whatever the window's length
    };
    static WindowBytes window_bytes(const models::Model& model);

    /// Tokens of each step for a prompt of which `tokens` are still to be read; at least `batch` of them.
    std::int64_t plan_window(std::int64_t tokens, std::int64_t batch) const;

    /// Between requests, while no step runs: gives layers the slots back that they lack, and shares the slots
    /// out anew where the profile has moved enough for it to pay.
    void between_requests();

    HybridExperts& experts() const { return *hybrid_; }
    expert_cache::ExpertCache& cache() const { return *cache_; }
    /// What is counted of this run; null where no profile was given.
    expert_cache::RoutingProfile* profile() { return options_.profile ? &*options_.profile : nullptr; }
    FakeMachine& machine() { return *machine_; }
    const ExpertCatalog& catalog() const { return catalog_; }
    const OffloadOptions& options() const { return options_; }

  private:
    std::vector<std::unique_ptr<DeviceExperts>> make_devices(const models::Model& model);
    expert_cache::Costs assumed_costs(int threads) const;
    void make_cache();
    std::int32_t missing_experts(int layer) const;  ///< that no device holds now
    void preload();
    enum class Unused { LeftOut, Too };
    /// By the profile; experts that it does not know come last, in the order of the file.
    std::vector<expert_cache::ExpertKey> hottest_first(Unused unused) const;
    std::vector<std::int32_t> host_places(const expert_cache::CacheOptions& cache, std::uint64_t bytes) const;
    void rebalance();
    expert_cache::UsageCounts usage() const;

    OffloadOptions options_;
    const DeviceLimits largest_;
    const WindowBytes window_bytes_;
    const PlacementFacts facts_;
    SteadyClock steady_clock_;
    ExpertCatalog catalog_;
    std::unique_ptr<FakeMachine> machine_;
    std::unique_ptr<expert_cache::ExpertCache> cache_;
    std::unique_ptr<HybridExperts> hybrid_;
    std::uint64_t balanced_tokens_ = 0;  ///< counted when the shares were last looked at
};

}  // namespace coterie::engine
