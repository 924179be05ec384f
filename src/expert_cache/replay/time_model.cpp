#include "expert_cache/replay/time_model.h"

#include <algorithm>

namespace coterie::expert_cache {
namespace {

/// However fast the link is, the CPU keeps a tenth of the RAM's rate.
constexpr double kLargestShareOfRam = 0.9;

}  // namespace

TimeModel::TimeModel(const ReplayCosts& costs)
    : costs_(costs), link_rate_(std::min(costs.link_rate, kLargestShareOfRam * costs.ram_rate)) {}

void TimeModel::run_layer(double hit_bytes, double missed_bytes) {
    const double device = hit_bytes / costs_.vram_rate;
    const double cpu = missed_bytes > 0.0 ? costs_.handoff + cpu_seconds(missed_bytes) : 0.0;
    now_ += std::max(device, cpu);
}

/// Slowly while uploads run, then at the full rate.
double TimeModel::cpu_seconds(double bytes) const {
    const double shared_rate = costs_.ram_rate - link_rate_;
    const double shared_seconds = std::max(0.0, link_free_at_ - now_);
    const double shared_bytes = shared_seconds * shared_rate;
    if (bytes <= shared_bytes) return bytes / shared_rate;
    return shared_seconds + (bytes - shared_bytes) / costs_.ram_rate;
}

void TimeModel::end_token() {
    budget_ = costs_.upload_share * (now_ - token_start_);
    token_start_ = now_;
}

bool TimeModel::may_upload(double bytes) const {
    if (costs_.upload_share == 0.0) return false;
    const double busy = link_free_at_ - now_;
    return busy <= 0.0 || busy + bytes / link_rate_ <= budget_;
}

double TimeModel::start_upload(double bytes) {
    link_free_at_ = std::max(now_, link_free_at_) + bytes / link_rate_;
    return link_free_at_;
}

}  // namespace coterie::expert_cache
