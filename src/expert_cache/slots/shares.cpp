#include "expert_cache/slots/shares.h"

#include <algorithm>

namespace coterie::expert_cache {
namespace {

std::uint64_t mapped(const Share& share, std::int32_t slots, std::uint64_t granularity) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(slots) * share.slot_bytes;
    return (bytes + granularity - 1) / granularity * granularity;
}

/// The slots that fit into `bytes` when they are cut down to whole granules.
std::int32_t fitting(const Share& share, double bytes, std::uint64_t granularity) {
    if (share.capacity == 0 || share.slot_bytes == 0) return 0;
    const auto whole = static_cast<std::uint64_t>(bytes) / granularity * granularity;
    return static_cast<std::int32_t>(
        std::min<std::uint64_t>(whole / share.slot_bytes, static_cast<std::uint64_t>(share.capacity)));
}

}  // namespace

void share_out(std::span<Share> shares, std::uint64_t bytes, std::uint64_t granularity) {
    for (Share& share : shares) share.slots = 0;
    std::uint64_t left = bytes;
    bool changed = true;
    // Each round shares out what is left among the layers that can still take some.
    while (changed) {
        changed = false;
        double weights = 0;
        for (const Share& share : shares) weights += share.slots < share.capacity ? share.weight : 0;
        const auto round = static_cast<double>(left);
        for (Share& share : shares) {
            if (share.slots == share.capacity || weights <= 0) continue;
            const std::uint64_t had = mapped(share, share.slots, granularity);
            const double part = static_cast<double>(had) + round * share.weight / weights;
            const std::int32_t slots = fitting(share, part, granularity);
            if (slots <= share.slots) continue;
            left -= mapped(share, slots, granularity) - had;
            share.slots = slots;
            changed = true;
        }
    }
}

std::int32_t spare_of(std::int32_t slots, std::int32_t wanted, Complete layer) {
    if (layer == Complete::Yes || slots < 2) return 0;
    return std::min(wanted, std::max(slots / 4, 1));
}

}  // namespace coterie::expert_cache
