#pragma once

#include <cstddef>
#include <cstdint>

#include "expert_cache/costs/costs.h"
#include "expert_cache/costs/ram_use.h"

namespace coterie::expert_cache {

/// Refines costs by what really happened, so that a rough start (a probe of a second, or an assumption) ends
/// at the truth. Each observation is split as the costs predict it; its error goes to the larger part, a 32nd
/// of it per observation. An observation is taken as at most four times, at least a quarter of its
/// prediction: one late interrupt must not turn the plan over. Nothing allocates. Used by one thread.
class CostAverages {
  public:
    /// `costs` is refined in place and must outlive this. Requires: checked costs.
    explicit CostAverages(Costs& costs) : costs_(costs) {}

    /// One copy from RAM to a device.
    void copied(std::size_t device, std::uint64_t bytes, double seconds, RamUse ram);

    /// Experts of one kind computed by the CPU in one pass, with `rows` (expert, token) pairs together.
    void cpu_computed(std::size_t kind, std::int64_t experts, std::int64_t rows, std::uint64_t bytes,
                      double seconds);

    /// The same on a device, without hand-off.
    void device_computed(std::size_t device, std::size_t kind, std::int64_t experts, std::int64_t rows,
                         std::uint64_t bytes, double seconds);

    /// A round trip of activations that carried no other wait.
    void cpu_handed_off(double seconds);
    void device_handed_off(std::size_t device, double seconds);

  private:
    Costs& costs_;
};

}  // namespace coterie::expert_cache
