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
struct Residence {
    std::int32_t device;  ///< below 255
    std::int32_t slot;    ///< below 2^23
    std::uint32_t version;

    friend bool operator==(const Residence&, const Residence&) = default;
};

/// Whether nobody has used an expert yet since a copy brought it.
enum class Fresh : bool { No, Yes };

/// What the table says of one expert, in one word: eight of them stand in a line of the CPU's cache.
class ResidencyEntry {
  public:
    std::optional<Residence> find() const {
        const std::uint64_t place = place_.load();
        if (place == 0) return std::nullopt;
        return Residence{.device = device_of(place),
                         .slot = static_cast<std::int32_t>(place >> 32 & 0x7fffff),
                         .version = static_cast<std::uint32_t>(place)};
    }

    /// The same without a branch, which misses come too often for: `device` is -1 where there is nothing.
    struct Spot {
        std::int32_t device;
        std::int32_t slot;
    };
    Spot spot() const {
        const std::uint64_t place = place_.load();
        return {.device = device_of(place), .slot = static_cast<std::int32_t>(place >> 32 & 0x7fffff)};
    }

    struct Use {
        std::int32_t place;  ///< device + 1; 0: not resident
        bool first;          ///< since a copy brought the expert
    };
    Use use() {
        std::uint64_t place = place_.load();
        const bool first = (place & kFresh) != 0 && place_.compare_exchange_strong(place, place & ~kFresh);
        return {.place = device_of(place) + 1, .first = first};
    }

    Fresh fresh() const { return (place_.load() & kFresh) != 0 ? Fresh::Yes : Fresh::No; }
    void publish(const Residence& place, Fresh fresh) {
        place_.store(static_cast<std::uint64_t>(place.device + 1) << 56 | (fresh == Fresh::Yes ? kFresh : 0) |
                     static_cast<std::uint64_t>(place.slot) << 32 | place.version);
    }
    void withdraw() { place_.store(0); }

  private:
    static constexpr std::uint64_t kFresh = std::uint64_t{1} << 55;
    static std::int32_t device_of(std::uint64_t place) { return static_cast<std::int32_t>(place >> 56) - 1; }

    std::atomic<std::uint64_t> place_{0};  ///< device + 1 : 8, fresh : 1, slot : 23, version : 32; 0: absent
};

/// The published table of residents. Reading takes no lock; one thread at a time writes.
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
        wanted_ = std::make_unique<std::atomic<bool>[]>(experts);
    }

    /// [experts]
    ResidencyEntry* layer(std::int32_t layer) const {
        return entries_.get() + first_[static_cast<std::size_t>(layer)];
    }
    ResidencyEntry& at(ExpertKey key) const { return layer(key.layer)[key.expert]; }

    std::optional<Residence> find(ExpertKey key) const { return at(key).find(); }
    void publish(ExpertKey key, std::int32_t device, std::int32_t slot, Fresh fresh) {
        at(key).publish({.device = device, .slot = slot, .version = version_.fetch_add(1) + 1}, fresh);
    }
    void withdraw(ExpertKey key) {
        at(key).withdraw();
        version_.fetch_add(1);
    }

    /// The policy let the expert in when it was last missed, and it is not on its way.
    void mark_wanted(ExpertKey key, bool wanted) {
        std::atomic<bool>& of = wanted_[index(key)];
        if (of.load(std::memory_order_relaxed) != wanted) of.store(wanted, std::memory_order_relaxed);
    }
    bool wanted(ExpertKey key) const { return wanted_[index(key)].load(std::memory_order_relaxed); }

    /// Differs once anything was published or withdrawn. Read before the table it says at least what the
    /// table says.
    std::uint32_t version() const { return version_.load(); }

    bool contains(ExpertKey key) const {
        if (key.layer < 0 || static_cast<std::size_t>(key.layer) + 1 >= first_.size()) return false;
        const auto layer = static_cast<std::size_t>(key.layer);
        return key.expert >= 0 && static_cast<std::size_t>(key.expert) < first_[layer + 1] - first_[layer];
    }

  private:
    std::size_t index(ExpertKey key) const {
        return first_[static_cast<std::size_t>(key.layer)] + static_cast<std::size_t>(key.expert);
    }

    std::vector<std::size_t> first_;  ///< [layers + 1]
    std::unique_ptr<ResidencyEntry[]> entries_;
    std::unique_ptr<std::atomic<bool>[]> wanted_;
    std::atomic<std::uint32_t> version_{0};
};

}  // namespace coterie::expert_cache
