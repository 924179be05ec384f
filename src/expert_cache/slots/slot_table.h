#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "devices/device.h"
#include "expert_cache/slots/layer_shape.h"

namespace coterie::expert_cache {

enum class SlotState : std::uint8_t { Absent, Free, Filling, Resident, Retiring };
constexpr std::size_t kSlotStates = 5;

/// The slots of one device: which there are, what each holds, and the memory under them.
///
/// Each layer has a part of one reserved address range that is large enough for all its experts. Its slots
/// are equal and stand one after the other from the front of the part; memory is mapped as far as they reach.
/// So a layer grows and shrinks at its end, and no address ever changes.
///
/// A slot's life, and who moves it on:
///
///     Absent --grow--> Free --claim--> Filling --publish--> Resident --retire--> Retiring --reclaim--> Free
///                       |                 |
///        Absent <--shrink                 +--abandon--> Free
///
/// The cache claims a slot before it starts a copy into it, and publishes or abandons it when the copy is
/// over. It retires a slot when no table names it any more; the slot may still be read, and is reclaimed when
/// every step that was running then has ended and no lease pins it. Whoever shrinks a layer first sees to it
/// that its last slots are Free.
///
/// Used under the cache's lock, but for `count`, `address` and the pins, which any thread may use.
class SlotTable {
  public:
    /// Reserves addresses and maps nothing.
    SlotTable(Device& device, std::span<const LayerShape> layers);
    ~SlotTable();

    std::int32_t layers() const { return static_cast<std::int32_t>(layers_.size()); }
    /// At most one slot an expert.
    std::int32_t capacity(std::int32_t layer) const { return at(layer).capacity; }
    std::int32_t slots(std::int32_t layer) const { return at(layer).count; }
    /// Any thread.
    std::int32_t count(std::int32_t layer, SlotState state) const {
        return at(layer).counts[static_cast<std::size_t>(state)].load(std::memory_order_relaxed);
    }
    std::uint64_t slot_bytes(std::int32_t layer) const { return at(layer).slot_bytes; }
    /// Memory mapped for a layer that has `slots` slots.
    std::uint64_t bytes_for(std::int32_t layer, std::int32_t slots) const;
    std::uint64_t mapped_bytes() const;

    SlotState state(std::int32_t layer, std::int32_t slot) const { return slot_at(layer, slot).state; }
    /// Of a slot that is Filling, Resident or Retiring.
    std::int32_t expert(std::int32_t layer, std::int32_t slot) const { return slot_at(layer, slot).expert; }
    DeviceAddress address(std::int32_t layer, std::int32_t slot) const {
        return base_ + (at(layer).offset + static_cast<std::uint64_t>(slot) * at(layer).slot_bytes);
    }

    /// False, and no change, where the device refuses the memory.
    [[nodiscard]] bool grow(std::int32_t layer, std::int32_t slots);
    /// Requires: all slots from `slots` on are Free.
    void shrink(std::int32_t layer, std::int32_t slots);
    /// Slots from `limit` on are not claimed any more; no limit: capacity.
    void limit_claims(std::int32_t layer, std::int32_t limit) { at(layer).claim_limit = limit; }

    /// The first Free slot, or nothing.
    std::optional<std::int32_t> claim(std::int32_t layer, std::int32_t expert);
    void publish(std::int32_t layer, std::int32_t slot);
    void abandon(std::int32_t layer, std::int32_t slot);
    /// `epoch` orders the retirement among the steps (StepEpochs).
    void retire(std::int32_t layer, std::int32_t slot, std::uint64_t epoch);
    /// Whether the slot is Retiring, was retired before `oldest_step` began, and is not pinned.
    bool reclaimable(std::int32_t layer, std::int32_t slot, std::uint64_t oldest_step) const;
    void reclaim(std::int32_t layer, std::int32_t slot);

    // Leases. Sequentially consistent: see ExpertLease.
    void pin(std::int32_t layer, std::int32_t slot) {
        at(layer).pin_sum.fetch_add(1);
        pin_count(layer, slot).fetch_add(1);
    }
    void unpin(std::int32_t layer, std::int32_t slot) {
        pin_count(layer, slot).fetch_sub(1);
        at(layer).pin_sum.fetch_sub(1);
    }
    bool pinned(std::int32_t layer, std::int32_t slot) const { return pin_count(layer, slot).load() != 0; }

    bool any_pinned(std::int32_t layer) const { return at(layer).pin_sum.load() != 0; }

    /// Maps one stretch of memory beside the slots; nothing where the device refuses it or one is lent
    /// already.
    std::optional<DeviceAddress> map_loan(std::uint64_t bytes);
    void unmap_loan();
    std::uint64_t loan_bytes() const { return loan_bytes_; }

    /// After the device is lost: nothing of it is unmapped or used any more.
    void abandon_device() { lost_ = true; }

    /// Throws Internal unless counts, states and mapped memory agree.
    void check_integrity() const;

  private:
    struct Slot {
        std::uint64_t retired = 0;
        std::int32_t expert = -1;
        SlotState state = SlotState::Absent;
    };
    struct Layer {
        std::int32_t capacity = 0;
        std::int32_t count = 0;
        std::int32_t claim_limit = 0;
        std::int32_t first_free = 0;  ///< no slot below is Free
        std::uint64_t slot_bytes = 0;
        std::uint64_t offset = 0;                            ///< of the layer's part in the range
        std::vector<Slot> slots;                             ///< [capacity]
        std::unique_ptr<std::atomic<std::uint32_t>[]> pins;  ///< [capacity]: leases
        std::atomic<std::uint32_t> pin_sum{0};
        std::array<std::atomic<std::int32_t>, kSlotStates> counts{};  ///< by state
    };
    const Layer& at(std::int32_t layer) const { return layers_[static_cast<std::size_t>(layer)]; }
    Layer& at(std::int32_t layer) { return layers_[static_cast<std::size_t>(layer)]; }
    const Slot& slot_at(std::int32_t layer, std::int32_t slot) const {
        return at(layer).slots[static_cast<std::size_t>(slot)];
    }
    std::atomic<std::uint32_t>& pin_count(std::int32_t layer, std::int32_t slot) const {
        return at(layer).pins[static_cast<std::size_t>(slot)];
    }
    void unmap(std::uint64_t offset, std::uint64_t bytes);
    void move(std::int32_t layer, std::int32_t slot, SlotState from, SlotState to);

    std::uint64_t granularity_;
    std::vector<Layer> layers_;
    std::uint64_t loan_offset_ = 0;
    std::uint64_t loan_bytes_ = 0;
    bool lost_ = false;
    std::unique_ptr<AddressRange> range_;
    DeviceAddress base_{};  ///< of the range
};

}  // namespace coterie::expert_cache
