#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "expert_cache/expert_key.h"
#include "expert_cache/slots/layer_shape.h"

namespace coterie::expert_cache {

/// Which slot an expert's bytes stand in. `version` differs each time that anything is published, so that an
/// entry which is seen twice has been there in between.
struct Placement {
    std::int32_t device;  ///< below 255
    std::int32_t slot;    ///< below 2^24
    std::uint32_t version;

    friend bool operator==(const Placement&, const Placement&) = default;
};

/// What the table says of one expert; all that a use of it touches, in one stretch of memory.
class alignas(32) ResidencyEntry {
  public:
    std::optional<Placement> find() const {
        const std::uint64_t place = place_.load();
        if (place == 0) return std::nullopt;
        return Placement{.device = static_cast<std::int32_t>(place >> 56) - 1,
                         .slot = static_cast<std::int32_t>(place >> 32 & 0xffffff),
                         .version = static_cast<std::uint32_t>(place)};
    }
    void publish(const Placement& place) {
        place_.store(static_cast<std::uint64_t>(place.device + 1) << 56 |
                     static_cast<std::uint64_t>(place.slot) << 32 | place.version);
    }
    void withdraw() { place_.store(0); }

    /// `step`: its number in StepEpochs. The latest counts; where two steps mark at once, either may, which
    /// only makes one expert's stay shorter: its bytes are protected by the steps' numbers.
    void mark_used(std::uint64_t step) {
        if (used_.load(std::memory_order_relaxed) < step) used_.store(step, std::memory_order_relaxed);
    }
    std::uint64_t last_used() const { return used_.load(std::memory_order_relaxed); }

    /// A copy that nobody has used yet brought the expert.
    void mark_fresh() { fresh_.store(true, std::memory_order_relaxed); }
    /// Whether it was fresh; it is not any more.
    bool take_fresh() {
        return fresh_.load(std::memory_order_relaxed) && fresh_.exchange(false, std::memory_order_relaxed);
    }

    /// The policy let the expert in when it was last missed, and it is not on its way.
    void mark_wanted(bool wanted) { wanted_.store(wanted, std::memory_order_relaxed); }
    bool wanted() const { return wanted_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> place_{0};  ///< device + 1 : 8, slot : 24, version : 32; 0: not resident
    std::atomic<std::uint64_t> used_{0};
    std::atomic<bool> fresh_{false};
    std::atomic<bool> wanted_{false};
};

/// The published table of residents. Reading takes no lock; one thread at a time writes placements, any
/// thread marks uses.
class Residency {
  public:
    explicit Residency(std::span<const LayerShape> layers) {
        std::size_t experts = 0;
        for (const LayerShape& layer : layers) {
            first_.push_back(experts);
            experts += static_cast<std::size_t>(layer.experts);
        }
        first_.push_back(experts);
        entries_ = std::make_unique<ResidencyEntry[]>(experts);
    }

    /// [experts]
    ResidencyEntry* layer(std::int32_t layer) const {
        return entries_.get() + first_[static_cast<std::size_t>(layer)];
    }
    ResidencyEntry& at(ExpertKey key) const { return layer(key.layer)[key.expert]; }

    std::optional<Placement> find(ExpertKey key) const { return at(key).find(); }
    void publish(ExpertKey key, std::int32_t device, std::int32_t slot) {
        at(key).publish({.device = device, .slot = slot, .version = version_.fetch_add(1) + 1});
    }
    void withdraw(ExpertKey key) {
        at(key).withdraw();
        version_.fetch_add(1);
    }

    /// Differs once anything was published or withdrawn. Read before the table it says at least what the
    /// table says.
    std::uint32_t version() const { return version_.load(); }

    bool contains(ExpertKey key) const {
        if (key.layer < 0 || static_cast<std::size_t>(key.layer) + 1 >= first_.size()) return false;
        const auto layer = static_cast<std::size_t>(key.layer);
        return key.expert >= 0 && static_cast<std::size_t>(key.expert) < first_[layer + 1] - first_[layer];
    }

  private:
    std::vector<std::size_t> first_;  ///< [layers + 1]
    std::unique_ptr<ResidencyEntry[]> entries_;
    std::atomic<std::uint32_t> version_{0};
};

}  // namespace coterie::expert_cache
