#include "expert_cache/slots/slot_table.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"

namespace coterie::expert_cache {
namespace {

// What kernels may expect of a slot's first byte.
constexpr std::uint64_t kSlotAlignment = 256;

std::size_t index(SlotState state) { return static_cast<std::size_t>(state); }

}  // namespace

SlotTable::SlotTable(Device& device, std::span<const LayerShape> shapes)
    : granularity_(device.mapping_granularity()), layers_(shapes.size()) {
    std::uint64_t offset = 0;
    for (std::size_t l = 0; l < shapes.size(); ++l) {
        Layer& layer = layers_[l];
        const auto experts = static_cast<std::size_t>(shapes[l].experts);
        layer.capacity = layer.claim_limit = shapes[l].experts;
        layer.slot_bytes = sized(checked_align_up(shapes[l].expert_bytes, kSlotAlignment));
        layer.offset = offset;
        layer.slots.resize(experts);
        layer.pins = std::make_unique<std::atomic<std::uint32_t>[]>(experts);
        layer.counts[index(SlotState::Absent)] = shapes[l].experts;
        const std::uint64_t part = sized(checked_multiply(experts, layer.slot_bytes));
        offset = sized(checked_add(offset, sized(checked_align_up(part, granularity_))));
    }
    loan_offset_ = offset;
    // A loan can be as large as all slots together.
    const std::uint64_t bytes = std::max(sized(checked_multiply(offset, 2)), granularity_);
    range_ = device.reserve(bytes);
    base_ = range_->address();
}

SlotTable::~SlotTable() = default;

std::uint64_t SlotTable::bytes_for(std::int32_t layer, std::int32_t slots) const {
    const std::uint64_t bytes = static_cast<std::uint64_t>(slots) * at(layer).slot_bytes;
    return (bytes + granularity_ - 1) / granularity_ * granularity_;
}

std::uint64_t SlotTable::mapped_bytes() const {
    std::uint64_t bytes = 0;
    for (std::int32_t l = 0; l < layers(); ++l) bytes += bytes_for(l, at(l).count);
    return bytes;
}

bool SlotTable::grow(std::int32_t layer, std::int32_t slots) {
    COTERIE_CHECK(slots >= at(layer).count && slots <= at(layer).capacity);
    if (lost_) return false;
    const std::uint64_t mapped = bytes_for(layer, at(layer).count);
    const std::uint64_t wanted = bytes_for(layer, slots);
    if (wanted > mapped) {
        try {
            range_->map(at(layer).offset + mapped, wanted - mapped);
        } catch (const Error&) {  // refused memory is an expected outcome here
            return false;
        }
    }
    while (at(layer).count < slots) move(layer, at(layer).count++, SlotState::Absent, SlotState::Free);
    return true;
}

void SlotTable::shrink(std::int32_t layer, std::int32_t slots) {
    COTERIE_CHECK(slots >= 0 && slots <= at(layer).count);
    const std::uint64_t mapped = bytes_for(layer, at(layer).count);
    const std::uint64_t wanted = bytes_for(layer, slots);
    while (at(layer).count > slots) move(layer, --at(layer).count, SlotState::Free, SlotState::Absent);
    if (wanted < mapped) unmap(at(layer).offset + wanted, mapped - wanted);
}

std::optional<std::int32_t> SlotTable::claim(std::int32_t layer, std::int32_t expert) {
    Layer& of = at(layer);
    if (lost_ || count(layer, SlotState::Free) == 0) return std::nullopt;
    while (of.first_free < of.count && state(layer, of.first_free) != SlotState::Free) ++of.first_free;
    const std::int32_t end = std::min(of.count, of.claim_limit);
    for (std::int32_t slot = of.first_free; slot < end; ++slot) {
        if (state(layer, slot) != SlotState::Free) continue;
        move(layer, slot, SlotState::Free, SlotState::Filling);
        of.slots[static_cast<std::size_t>(slot)].expert = expert;
        return slot;
    }
    return std::nullopt;
}

void SlotTable::publish(std::int32_t layer, std::int32_t slot) {
    move(layer, slot, SlotState::Filling, SlotState::Resident);
}

void SlotTable::abandon(std::int32_t layer, std::int32_t slot) {
    move(layer, slot, SlotState::Filling, SlotState::Free);
}

void SlotTable::retire(std::int32_t layer, std::int32_t slot, std::uint64_t epoch) {
    move(layer, slot, SlotState::Resident, SlotState::Retiring);
    at(layer).slots[static_cast<std::size_t>(slot)].retired = epoch;
}

bool SlotTable::reclaimable(std::int32_t layer, std::int32_t slot, std::uint64_t oldest_step) const {
    const Slot& of = slot_at(layer, slot);
    return of.state == SlotState::Retiring && of.retired < oldest_step && !pinned(layer, slot);
}

void SlotTable::reclaim(std::int32_t layer, std::int32_t slot) {
    move(layer, slot, SlotState::Retiring, SlotState::Free);
}

std::optional<DeviceAddress> SlotTable::map_loan(std::uint64_t bytes) {
    const auto rounded = checked_align_up(bytes, granularity_);
    if (lost_ || loan_bytes_ > 0 || bytes == 0 || !rounded || *rounded > range_->bytes() - loan_offset_) {
        return std::nullopt;
    }
    try {
        range_->map(loan_offset_, *rounded);
    } catch (const Error&) {  // refused memory is an expected outcome here
        return std::nullopt;
    }
    loan_bytes_ = *rounded;
    return range_->address() + loan_offset_;
}

void SlotTable::unmap_loan() {
    COTERIE_CHECK(loan_bytes_ > 0);
    unmap(loan_offset_, loan_bytes_);
    loan_bytes_ = 0;
}

void SlotTable::unmap(std::uint64_t offset, std::uint64_t bytes) {
    if (lost_) return;
    try {
        range_->unmap(offset, bytes);
    } catch (const Error&) {  // only a lost device does not take memory back
        lost_ = true;
    }
}

void SlotTable::move(std::int32_t layer, std::int32_t slot, SlotState from, SlotState to) {
    Slot& of = at(layer).slots[static_cast<std::size_t>(slot)];
    COTERIE_CHECK(of.state == from);
    of.state = to;
    if (to == SlotState::Free) at(layer).first_free = std::min(at(layer).first_free, slot);
    at(layer).counts[index(from)].fetch_sub(1, std::memory_order_relaxed);
    at(layer).counts[index(to)].fetch_add(1, std::memory_order_relaxed);
}

void SlotTable::check_integrity() const {
    for (std::int32_t l = 0; l < layers(); ++l) {
        std::array<std::int32_t, kSlotStates> counted{};
        for (std::int32_t slot = 0; slot < at(l).capacity; ++slot) {
            const Slot& of = slot_at(l, slot);
            ++counted[index(of.state)];
            COTERIE_CHECK((of.state == SlotState::Absent) == (slot >= at(l).count));
            const bool holds = of.state != SlotState::Absent && of.state != SlotState::Free;
            COTERIE_CHECK(!holds || (of.expert >= 0 && of.expert < at(l).capacity));
        }
        for (std::size_t s = 0; s < kSlotStates; ++s) COTERIE_CHECK(counted[s] == at(l).counts[s].load());
    }
}

}  // namespace coterie::expert_cache
