#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert_cache/costs/costs.h"
#include "expert_cache/planner/step_problem.h"

namespace coterie::expert_cache {

/// A device in one layer of one step: what work takes there, and the work it was given.
struct DeviceState {
    const ComputeCosts* compute = nullptr;
    double read_seconds = 0;            ///< an expert from the device's memory
    double copy_seconds = 0;            ///< an expert over the link, nothing else reading RAM
    double contended_copy_seconds = 0;  ///< the same while something else reads
    double handoff_seconds = 0;         ///< 0 at the layer's home

    std::int32_t residents = 0;
    std::int32_t fetched = 0;
    double resident_seconds = 0;
    double fetched_seconds = 0;
};

/// How good a plan is: of two plans of one cost the one that keeps less busy is better.
struct StepScore {
    double cost;    ///< seconds: finish less the gain of the fetches, what a plan minimises
    double finish;  ///< seconds
    double busy;    ///< seconds of all devices, the CPU and RAM together

    /// Costs must differ by far more than rounding, so that a search ends.
    bool better_than(const StepScore& other) const {
        const double margin = 1e-9 * other.finish;
        if (cost < other.cost - margin) return true;
        return cost <= other.cost && busy < other.busy - margin;
    }
};

/// The modelled time of a step while experts are moved about: sums per device and for the CPU, from which the
/// finish follows in a few operations. Formulas: plan_step.h. Nothing allocates.
class StepModel {
  public:
    /// `devices` is overwritten and must outlive the model. Requires: one per device of `costs`.
    StepModel(const StepProblem& problem, const Costs& costs, std::span<DeviceState> devices);

    void add(const UsedExpert& used, Assignment work);
    void remove(const UsedExpert& used, Assignment work);

    StepScore score() const;

    double device_finish(std::int32_t device) const {
        return device_finish(devices_[static_cast<std::size_t>(device)]);
    }
    double cpu_finish() const { return cpu_experts_ == 0 ? 0 : handoff_seconds_ + cpu_seconds_; }
    double ram_finish() const {
        const std::int32_t experts = cpu_experts_ + fetched_;
        return experts == 0 ? 0 : handoff_seconds_ + experts * ram_read_seconds_;
    }
    std::int32_t cpu_experts() const { return cpu_experts_; }
    std::int32_t fetched() const { return fetched_; }
    double cpu_row_seconds() const { return cpu_compute_->row_seconds; }
    double cpu_expert_seconds(const UsedExpert& used) const {
        return expert_seconds(*cpu_compute_, cpu_read_seconds_, used.tokens);
    }

  private:
    double device_finish(const DeviceState& device) const;

    std::span<DeviceState> devices_;
    const ComputeCosts* cpu_compute_;
    double cpu_read_seconds_;  ///< an expert
    double ram_read_seconds_;  ///< an expert's share of what RAM gives at most
    double handoff_seconds_;   ///< before anything reads RAM; 0 where the CPU is home

    std::int32_t cpu_experts_ = 0;
    double cpu_seconds_ = 0;
    std::int32_t fetched_ = 0;
    std::int32_t fetching_devices_ = 0;
    double fetch_gain_seconds_ = 0;
};

}  // namespace coterie::expert_cache
