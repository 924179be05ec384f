#include "engine/forward/link_share.h"

#include <algorithm>
#include <limits>

namespace coterie::engine {
namespace {

constexpr double kClearlySooner = 0.85;

}  // namespace

cuda::LinkShare cheapest_share(const MissCosts& costs) {
    // Company does not make the CPU faster: where it seems to, something else disturbed it when it was alone.
    const double beside = costs.contended_cpu > 0 ? costs.contended_cpu : costs.cpu;
    const double alone = std::min(costs.cpu, beside);
    cuda::LinkShare share;
    for (int missing = 1; missing <= cuda::kMostUsed; ++missing) {
        double best = std::numeric_limits<double>::infinity();
        for (int linked = 0; linked <= missing; ++linked) {
            const int handed = missing - linked;
            const double one = linked == 0 ? alone : beside;
            const double cpu = handed == 0 ? 0.0 : costs.hand_off + handed * one;
            const double end = std::max(linked * costs.link, cpu);
            if (end >= kClearlySooner * best) continue;
            best = end;
            share.of[missing] = static_cast<std::uint8_t>(linked);
        }
    }
    return share;
}

}  // namespace coterie::engine
