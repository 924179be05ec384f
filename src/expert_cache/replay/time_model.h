#pragma once

#include <cstdint>

#include "expert_cache/replay/replay_costs.h"

namespace coterie::expert_cache {

/// A clock that goes on as the experts of a decoded token would take; attention and dense layers take
/// nothing.
///
/// In a layer the device reads the hits from VRAM while the CPU reads the misses from RAM, and the later of
/// both ends it. Uploads go over the link one after another beside all that and take their rate away from the
/// CPU's while they run.
class TimeModel {
  public:
    explicit TimeModel(const ReplayCosts& costs);

    double now() const { return now_; }  ///< seconds

    /// One layer of a token.
    void run_layer(double hit_bytes, double missed_bytes);
    /// Sets the budget of uploads that may start now.
    void end_token();

    /// Whether the budget has room; one upload always has, unless uploads have no share at all.
    bool may_upload(double bytes) const;
    /// Returns when the upload will have landed.
    double start_upload(double bytes);

  private:
    double cpu_seconds(double bytes) const;

    ReplayCosts costs_;
    double link_rate_;  ///< of uploads: what the link and RAM can give
    double now_ = 0.0;
    double token_start_ = 0.0;
    double budget_ = 0.0;        ///< seconds the link may be busy from now on
    double link_free_at_ = 0.0;  ///< when the last upload has landed
};

}  // namespace coterie::expert_cache
