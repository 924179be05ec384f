#include <algorithm>

#include "expert_cache/planner/step_search.h"

namespace coterie::expert_cache {
namespace {

/// Experts with equal tokens differ only in where they are, so a plan is a few numbers: how many residents of
/// each device go to the CPU, and how many misses each device fetches (those with most gain, which the device
/// does not matter to).
class CountSearch {
  public:
    CountSearch(StepState& state, std::span<std::int32_t> order) : state_(state), order_(order) {
        for (std::size_t i = 0; i < state.size(); ++i) order_[i] = static_cast<std::int32_t>(i);
        order_ = order_.first(state.size());
        std::sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) { return before(a, b); });
        while (misses_ < state.size() && !state.resident(at(misses_))) {
            gain_ += static_cast<double>(state.used(at(misses_++)).fetch_gain_seconds);
        }
        if (state.size() > 0) cpu_expert_seconds_ = state.model().cpu_expert_seconds(state.used(0));
    }

    void run() {
        best_ = state_.score();
        search_device(0, 0, misses_, 0);
        state_.restore();
    }

  private:
    /// Misses first, most gain first; then residents by device.
    bool before(std::int32_t left, std::int32_t right) const {
        const UsedExpert& a = state_.used(static_cast<std::size_t>(left));
        const UsedExpert& b = state_.used(static_cast<std::size_t>(right));
        if (a.device != b.device) return a.device < b.device;
        if (a.fetch_gain_seconds != b.fetch_gain_seconds) return a.fetch_gain_seconds > b.fetch_gain_seconds;
        return left < right;
    }
    std::size_t at(std::size_t place) const { return static_cast<std::size_t>(order_[place]); }

    /// Devices before this one are decided: they fetched `fetched` misses and gave `on_cpu` residents to the
    /// CPU; this one's residents begin at `first`.
    void search_device(std::int32_t device, std::size_t fetched, std::size_t first, std::int32_t on_cpu) {
        if (device == state_.device_count()) return keep_if_better();
        std::size_t end = first;
        while (end < state_.size() && state_.used(at(end)).device == device) ++end;
        search_residents(device, fetched, first, end, on_cpu);
        std::size_t taken = fetched;
        while (taken < misses_ && can_fetch(device)) {
            state_.move(at(taken++), {Work::Fetch, device});
            search_residents(device, taken, first, end, on_cpu);
        }
        while (taken > fetched) state_.move(at(--taken), {});
    }

    /// A fetch must end before the best plan does, less what it may gain.
    bool can_fetch(std::int32_t device) const {
        const DeviceState& to = state_.devices()[static_cast<std::size_t>(device)];
        const double copying = (to.fetched + 1) * to.copy_seconds;
        return state_.has_room(device) && copying - gain_ < best_.cost;
    }

    /// Gives residents to the CPU one by one as long as the device, with one fewer, ends earlier.
    void search_residents(std::int32_t device, std::size_t fetched, std::size_t first, std::size_t end,
                          std::int32_t on_cpu) {
        search_device(device + 1, fetched, end, on_cpu);
        std::size_t moved = first;
        while (moved < end) {
            const double finish = state_.model().device_finish(device);
            if ((on_cpu + 1) * cpu_expert_seconds_ >= finish) break;
            state_.move(at(moved++), {});
            ++on_cpu;
            if (state_.model().device_finish(device) < finish)
                search_device(device + 1, fetched, end, on_cpu);
        }
        while (moved > first) state_.move(at(--moved), {Work::Resident, device});
    }

    void keep_if_better() {
        const StepScore score = state_.score();
        if (!score.better_than(best_)) return;
        best_ = score;
        state_.save();
    }

    StepState& state_;
    std::span<std::int32_t> order_;
    std::size_t misses_ = 0;
    double gain_ = 0;  ///< of all misses
    double cpu_expert_seconds_ = 0;
    StepScore best_{};
};

}  // namespace

void search_counts(StepState& state, std::span<std::int32_t> order) { CountSearch(state, order).run(); }

}  // namespace coterie::expert_cache
