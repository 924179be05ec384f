#pragma once

#include <cstdint>
#include <utility>

#include "devices/device.h"
#include "expert_cache/slots/slot_table.h"

namespace coterie::expert_cache {

/// Where a resident expert's bytes stand.
struct ResidentExpert {
    std::int32_t device;
    DeviceAddress address;
};

/// Keeps an expert's slot from being reused, and so its bytes at their address, until it goes. It must go
/// before the cache does, and after the device has done all work that reads the bytes.
///
/// Taking one pins the slot and then looks again whether the table still names it; whoever frees a slot first
/// takes it out of the table and then looks for pins. With sequential consistency one of the two sees the
/// other.
class ExpertLease {
  public:
    ExpertLease(ExpertLease&& other) noexcept
        : table_(std::exchange(other.table_, nullptr)),
          layer_(other.layer_),
          slot_(other.slot_),
          where_(other.where_) {}
    ExpertLease& operator=(ExpertLease&& other) noexcept {
        std::swap(table_, other.table_);
        std::swap(layer_, other.layer_);
        std::swap(slot_, other.slot_);
        std::swap(where_, other.where_);
        return *this;
    }
    ~ExpertLease() {
        if (table_) table_->unpin(layer_, slot_);
    }

    std::int32_t device() const { return where_.device; }
    DeviceAddress address() const { return where_.address; }

  private:
    friend class ExpertCache;
    /// Takes over a pin.
    ExpertLease(SlotTable& table, std::int32_t layer, std::int32_t slot, ResidentExpert where)
        : table_(&table), layer_(layer), slot_(slot), where_(where) {}

    SlotTable* table_;
    std::int32_t layer_;
    std::int32_t slot_;
    ResidentExpert where_;
};

}  // namespace coterie::expert_cache
