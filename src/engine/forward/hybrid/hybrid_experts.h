#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "engine/forward/expert_pass.h"
#include "engine/forward/hybrid/device_experts.h"
#include "engine/forward/hybrid/expert_catalog.h"
#include "engine/forward/hybrid/prompt_guess.h"
#include "engine/forward/hybrid/prompt_ring.h"
#include "expert_cache/backoff.h"
#include "expert_cache/costs/cost_averages.h"
#include "expert_cache/costs/costs.h"
#include "expert_cache/expert_cache.h"
#include "expert_cache/planner/plan_step.h"
#include "expert_cache/prefetch/prefetch_judge.h"
#include "expert_cache/prefetch/prefetcher.h"
#include "expert_cache/profile.h"

namespace coterie::engine {

/// Steps of up to so many tokens are decode-class: they teach the cache, and what they fetch stays in slots.
inline constexpr std::int64_t kDecodeTokens = 32;

/// A layer takes milliseconds; a device that needs longer than this does not answer any more.
inline constexpr std::chrono::seconds kDeviceWatchdog{5};

/// What the experts of steps did, for `--stats`. Counts since the start.
struct HybridStatistics {
    struct Path {
        std::uint64_t experts = 0;  ///< of layers and steps
        std::uint64_t bytes = 0;
        void add(std::uint64_t expert_bytes) {
            ++experts;
            bytes += expert_bytes;
        }
    };
    Path on_cpu;
    Path in_place;                 ///< from their slots
    Path fetched;                  ///< into slots, during the step
    Path streamed;                 ///< through a prompt's ring
    Path ran_ahead;                ///< of these, copied while attention was computed
    std::uint64_t recomputed = 0;  ///< experts, on the CPU, after a device had failed
};

/// The routed experts of a step, on devices and the CPU side by side, joined in rank order. So where an
/// expert is computed changes nothing but the time.
///
/// For each layer the planner says what every expert does. Devices' work is queued first, then the CPU
/// computes the rest, then the devices' outputs are awaited. What a device does not deliver the CPU computes
/// again. A device that refuses a call sits out some steps, ever more while it goes on; a lost one all.
///
/// Prompts (more than kDecodeTokens tokens) borrow the coldest slots' memory for their buffers and a ring,
/// through which missing experts are copied ahead of the products; it is given back at the step's end. What
/// the next layer will probably need is copied while its attention is computed.
class HybridExperts {
  public:
    struct Parts {
        ThreadPool& pool;
        ExpertPass& pass;  ///< of the CPU
        const ExpertCatalog& catalog;
        expert_cache::ExpertCache& cache;
        std::vector<std::unique_ptr<DeviceExperts>> devices;
        expert_cache::Costs costs;  ///< to begin with
        /// Whether they are refined by what steps take. Not where time is simulated: the CPU's is not.
        bool measures_costs = true;
        expert_cache::Prefetch prefetch = expert_cache::Prefetch::Off;
        expert_cache::RoutingProfile* profile =
            nullptr;  ///< counts what tokens use, prompts left out; null: nothing does
    };
    HybridExperts(Parts parts, const DeviceLimits& largest, std::int64_t output_width);

    void begin_step(std::int64_t tokens, std::int64_t assignments, expert_cache::Learning learning);
    void end_step();

    /// One layer. `chosen`: [rows][per_token] experts; `plan` as ExpertPass::run takes it.
    void run(int layer, const cpu::KernelTable& kernels, const ExpertPlan& plan,
             std::span<const std::int32_t> chosen, std::int32_t per_token,
             std::span<const ActivationRow> inputs, float* out, std::int64_t out_stride);

    /// The router whose guess `prefetch` wants while `layer` runs; null where it wants none.
    const models::MoeFfn* router_to_guess(int layer) const;
    /// Uploads what the layer after `layer` will need; `guessed`: [rows][used] by its router, or nothing.
    /// Call it before `run`.
    void prefetch(int layer, std::span<const std::int32_t> guessed);

    /// Whether prefetching pays so far; it is on only while it does, where costs are measured.
    const expert_cache::PrefetchJudge& prefetch_judge() const { return judge_; }
    const expert_cache::PrefetchStatistics& prefetch_statistics() const { return prefetcher_.statistics(); }
    const HybridStatistics& statistics() const { return statistics_; }
    const expert_cache::Costs& costs() const { return parts_.costs; }

  private:
    struct DeviceWork {
        std::unique_ptr<DeviceExperts> experts;
        std::optional<expert_cache::MemoryLoan> loan;
        std::optional<PromptRing> ring;
        std::vector<ExpertJob> jobs;           ///< of this layer, in the order of computation
        expert_cache::Backoff retry{1, 1024};  ///< steps, after refused calls
        bool gone = false;                     ///< lost, or does not answer: out for good
        bool serves = false;                   ///< in this step, as far as it has come
        bool served = false;                   ///< delivered something in this step
        bool from_ring = false;                ///< the last job's expert
        bool drains = false;                   ///< what it had begun may still run
        std::unique_ptr<Event> drained;
    };

    void observe_routing(int layer, std::span<const std::int32_t> chosen, std::int32_t per_token);
    void lend_memory(DeviceWork& work, std::int32_t device, const DeviceLimits& limits);
    void plan_layer(int layer, const ExpertPlan& plan);
    void dispatch(int layer, const ExpertPlan& plan, std::span<const ActivationRow> inputs);
    ExpertJob from_ram(int layer, const ExpertJob& job) const;
    bool queue_job(int layer, const ExpertPlan& plan, const ExpertJob& job,
                   expert_cache::Assignment assignment, std::span<const ActivationRow> inputs);
    std::optional<DeviceAddress> locate(DeviceWork& work, expert_cache::ExpertKey key,
                                        expert_cache::Assignment assignment);
    DeviceAddress bring(DeviceWork& work, expert_cache::ExpertKey key);
    std::int32_t device_of(expert_cache::ExpertKey key, std::int32_t resident_on) const;
    std::int64_t ring_buffers(std::int32_t device) const;
    void run_ahead(int layer);
    DeviceWork* roomiest_ring();
    void forget_ahead();
    void settle_rings();
    bool collect(DeviceWork& work, std::vector<ExpertJob>& failed);
    void compute_on_cpu(int layer, const cpu::KernelTable& kernels, const ExpertPlan& plan,
                        std::span<const ActivationRow> inputs);
    void observe_cpu(int layer, double seconds);
    void observe_device(int layer, std::size_t device);
    void observe_copies();
    std::size_t kind_of(int layer) const;
    void sit_out(DeviceWork& work, std::string_view why);
    void give_up(DeviceWork& work, std::string_view why);
    void drain(DeviceWork& work);
    bool prefetches() const;

    Parts parts_;
    const std::int64_t output_width_;
    std::vector<DeviceWork> devices_;
    std::optional<expert_cache::CacheStep> step_;
    bool prompt_ = false;
    bool learns_ = false;
    std::int64_t tokens_ = 0;  ///< of all steps before this one
    std::int64_t steps_ = 0;
    std::int64_t step_tokens_ = 0;
    HybridStatistics statistics_;
    expert_cache::CostAverages averages_{parts_.costs};

    PromptGuess guess_;
    expert_cache::Prefetcher prefetcher_;
    expert_cache::PrefetchJudge judge_;
    std::chrono::steady_clock::time_point step_start_;
    expert_cache::StepWorkspace workspace_;
    std::vector<std::int32_t> routed_;                     ///< experts of a layer's jobs
    std::vector<expert_cache::ResidentExpert> residents_;  ///< [routed_]
    std::vector<expert_cache::UsedExpert> used_;
    std::vector<std::int32_t> spare_slots_;
    std::vector<expert_cache::Assignment> assignments_;
    std::vector<ExpertJob> cpu_jobs_;
    std::vector<ExpertJob> failed_jobs_;
    AlignedBuffer<float> cpu_outputs_;     ///< [assignments][output_width]
    std::vector<const float*> output_of_;  ///< [assignments]
};

}  // namespace coterie::engine
