#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>

#include "base/error.h"

namespace coterie::expert_cache {

/// Orders steps and retirements, so that a retired slot is reused only when no step can still read it.
///
/// One counter numbers both. A step publishes its number before it reads the table of residents; whoever
/// retires a slot takes it out of the table first and then draws a number. A slot may be reused when the
/// oldest running step's number is above the slot's: that step began to read after the slot was out of the
/// table. A step that publishes its number late has read nothing yet. All of this relies on sequential
/// consistency between the table and the numbers. Neither locks nor allocates.
class StepEpochs {
  public:
    static constexpr std::int32_t kSteps = 16;

    /// Gives the place of a new step. Requires: fewer than kSteps run.
    std::int32_t begin() {
        for (std::int32_t place = 0; place < kSteps; ++place) {
            std::uint64_t none = 0;
            if (numbers_[at(place)].compare_exchange_strong(none, next())) return place;
        }
        COTERIE_CHECK(false);  // more steps at once than the cache is made for
        return 0;
    }
    /// The step now counts as begun at this moment.
    void renew(std::int32_t place) { numbers_[at(place)].store(next()); }
    void end(std::int32_t place) { numbers_[at(place)].store(0); }

    bool runs(std::int32_t place) const { return numbers_[at(place)].load() != 0; }
    /// For what was just taken out of the table.
    std::uint64_t retire() { return next(); }
    /// The number of the oldest step that runs; above all numbers where none does.
    std::uint64_t oldest() const {
        std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
        for (const auto& number : numbers_) {
            const std::uint64_t value = number.load();
            if (value != 0 && value < oldest) oldest = value;
        }
        return oldest;
    }

  private:
    static std::size_t at(std::int32_t place) { return static_cast<std::size_t>(place); }
    std::uint64_t next() { return last_.fetch_add(1) + 1; }

    std::atomic<std::uint64_t> last_{0};
    std::array<std::atomic<std::uint64_t>, kSteps> numbers_{};  ///< 0: free
};

}  // namespace coterie::expert_cache
