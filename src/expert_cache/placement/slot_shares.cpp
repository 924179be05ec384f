#include "expert_cache/placement/slot_shares.h"

#include <limits>

#include "base/function_ref.h"
#include "expert_cache/planner/step_problem.h"
#include "expert_cache/slots/shares.h"

namespace coterie::expert_cache {
namespace {

/// How much a layer that has so many slots wants one more; the largest gets it.
using Wish = FunctionRef<double(std::size_t layer, std::int32_t slots)>;

/// Gives out slots one by one. A layer's own device comes first, so that its experts need no other hand-off;
/// only when no layer finds room at home do slots go wherever there is room, to the emptiest device.
class SlotFiller {
  public:
    explicit SlotFiller(const SlotShareProblem& problem)
        : problem_(problem),
          left_(problem.device_bytes.begin(), problem.device_bytes.end()),
          given_(problem.model.layers.size(), 0),
          slots_(left_.size(), std::vector<std::int32_t>(problem.model.layers.size(), 0)) {}

    SlotCounts fill(Wish wish) {
        while (give_one(wish, Room::AtHome)) {
        }
        while (give_one(wish, Room::Anywhere)) {
        }
        return std::move(slots_);
    }

  private:
    enum class Room { AtHome, Anywhere };

    bool give_one(Wish wish, Room where) {
        std::size_t chosen = given_.size();
        double most = -std::numeric_limits<double>::infinity();
        for (std::size_t layer = 0; layer < given_.size(); ++layer) {
            if (given_[layer] >= problem_.limits[layer] || device_for(layer, where) == kNoDevice) continue;
            const double wanted = wish(layer, given_[layer]);
            if (wanted <= most) continue;
            most = wanted;
            chosen = layer;
        }
        if (chosen == given_.size()) return false;
        const auto device = static_cast<std::size_t>(device_for(chosen, where));
        left_[device] -= expert_bytes(chosen);
        ++slots_[device][chosen];
        ++given_[chosen];
        return true;
    }

    std::int32_t device_for(std::size_t layer, Room where) const {
        const std::int32_t owner = problem_.owner[layer];
        if (where == Room::Anywhere) return emptiest_device(layer);
        return owner != kNoDevice && has_room(static_cast<std::size_t>(owner), layer) ? owner : kNoDevice;
    }

    /// By the share of its bytes that is left, so that uneven devices fill up together.
    std::int32_t emptiest_device(std::size_t layer) const {
        std::int32_t emptiest = kNoDevice;
        double most = -1;
        for (std::size_t device = 0; device < left_.size(); ++device) {
            if (!has_room(device, layer)) continue;
            const double share =
                static_cast<double>(left_[device]) / static_cast<double>(problem_.device_bytes[device]);
            if (share <= most) continue;
            most = share;
            emptiest = static_cast<std::int32_t>(device);
        }
        return emptiest;
    }

    bool has_room(std::size_t device, std::size_t layer) const {
        return left_[device] >= expert_bytes(layer);
    }
    std::uint64_t expert_bytes(std::size_t layer) const { return problem_.model.layers[layer].expert_bytes; }

    const SlotShareProblem& problem_;
    std::vector<std::uint64_t> left_;  ///< [devices]
    std::vector<std::int32_t> given_;  ///< [layers]
    SlotCounts slots_;
};

}  // namespace

SlotCounts share_equally(const SlotShareProblem& problem) {
    return SlotFiller(problem).fill([&](std::size_t layer, std::int32_t slots) {
        return -static_cast<double>(slots) * static_cast<double>(problem.model.layers[layer].expert_bytes);
    });
}

SlotCounts share_by_profile(const SlotShareProblem& problem, const HitCurves& curves,
                            std::span<const double> saved_seconds) {
    return SlotFiller(problem).fill([&](std::size_t layer, std::int32_t slots) {
        const LayerFacts& facts = problem.model.layers[layer];
        const double hits_per_token = curves.gain(layer, slots) * facts.experts_used;
        return hits_per_token * saved_seconds[layer] / static_cast<double>(facts.expert_bytes);
    });
}

std::int32_t slots_of_layer(const SlotCounts& slots, std::size_t layer) {
    std::int32_t sum = 0;
    for (const std::vector<std::int32_t>& device : slots) sum += device[layer];
    return sum;
}

std::int32_t residents_of_layer(const SlotCounts& slots, std::size_t layer, std::int32_t experts,
                                std::int32_t spare_slots) {
    const bool all = slots_of_layer(slots, layer) >= experts;
    std::int32_t residents = 0;
    for (const std::vector<std::int32_t>& device : slots) {
        residents += device[layer] - spare_of(device[layer], spare_slots, all ? Complete::Yes : Complete::No);
    }
    return residents;
}

}  // namespace coterie::expert_cache
