#pragma once

#include "expert_cache/replay/replay_costs.h"

namespace CLI {
class App;
}

namespace coterie::cli {

/// The costs of a machine as people write them.
struct CostFlags {
    double link = 1e-9 * expert_cache::ReplayCosts{}.link_rate;  ///< GB/s, as the next two
    double ram = 1e-9 * expert_cache::ReplayCosts{}.ram_rate;
    double vram = 1e-9 * expert_cache::ReplayCosts{}.vram_rate;
    double handoff = 1e6 * expert_cache::ReplayCosts{}.handoff;  ///< microseconds
    double upload_share = expert_cache::ReplayCosts{}.upload_share;
};

void add_cost_flags(CLI::App& command, CostFlags& flags);

/// Throws InvalidArgument for what no machine has.
expert_cache::ReplayCosts checked_costs(const CostFlags& flags);

}  // namespace coterie::cli
