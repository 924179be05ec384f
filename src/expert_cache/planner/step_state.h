#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "expert_cache/planner/step_model.h"
#include "expert_cache/planner/step_problem.h"

namespace coterie::expert_cache {

/// A complete plan of a step under change: every used expert has its work, and the modelled time follows each
/// move. It begins with residents in place and the misses on the CPU.
class StepState {
  public:
    /// `saved` has room for all used experts. Everything given must outlive the state.
    StepState(const StepProblem& problem, const Costs& costs, std::span<DeviceState> devices,
              std::span<Assignment> work, std::span<Assignment> saved)
        : problem_(problem), devices_(devices), work_(work), saved_(saved), model_(problem, costs, devices) {
        for (std::size_t i = 0; i < size(); ++i) {
            work_[i] = in_place(i);
            model_.add(used(i), work_[i]);
        }
        save();
    }

    std::size_t size() const { return problem_.used.size(); }
    std::int32_t device_count() const { return static_cast<std::int32_t>(devices_.size()); }
    const UsedExpert& used(std::size_t i) const { return problem_.used[i]; }
    bool resident(std::size_t i) const { return used(i).device != kNoDevice; }
    Assignment in_place(std::size_t i) const {
        return resident(i) ? Assignment{Work::Resident, used(i).device} : Assignment{};
    }

    Assignment work(std::size_t i) const { return work_[i]; }
    const StepModel& model() const { return model_; }
    std::span<const DeviceState> devices() const { return devices_; }
    StepScore score() const { return model_.score(); }

    /// Whether the device has a spare slot left.
    bool has_room(std::int32_t device) const {
        const auto index = static_cast<std::size_t>(device);
        return devices_[index].fetched < problem_.spare_slots[index];
    }

    void move(std::size_t i, Assignment to) {
        model_.remove(used(i), work_[i]);
        work_[i] = to;
        model_.add(used(i), to);
    }

    /// One plan can be kept aside and taken up again.
    void save() {
        std::copy(work_.begin(), work_.begin() + static_cast<std::ptrdiff_t>(size()), saved_.begin());
    }
    void restore() {
        for (std::size_t i = 0; i < size(); ++i) {
            if (work_[i] != saved_[i]) move(i, saved_[i]);
        }
    }

  private:
    const StepProblem& problem_;
    std::span<DeviceState> devices_;
    std::span<Assignment> work_;
    std::span<Assignment> saved_;
    StepModel model_;
};

}  // namespace coterie::expert_cache
