#include "engine/forward/link_share.h"

#include <algorithm>
#include <limits>

namespace coterie::engine {
namespace {

constexpr double kClearlySooner = 0.85;

}  // namespace

cuda::LinkShare cheapest_share(const MissCosts& costs) {
    cuda::LinkShare share;
    for (int missing = 1; missing <= cuda::kMostUsed; ++missing) {
        double best = std::numeric_limits<double>::infinity();
        for (int linked = 0; linked <= missing; ++linked) {
            const int handed = missing - linked;
            const double one = linked == 0 ? costs.cpu : std::max(costs.cpu, costs.contended_cpu);
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
