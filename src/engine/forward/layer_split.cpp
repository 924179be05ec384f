#include "engine/forward/layer_split.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace coterie::engine {

std::vector<LayerRange> split_layers(std::span<const std::uint64_t> layer_bytes,
                                     std::span<const double> shares) {
    const auto layers = static_cast<int>(layer_bytes.size());
    const auto devices = static_cast<int>(shares.size());
    const double all_shares = std::accumulate(shares.begin(), shares.end(), 0.0);
    COTERIE_CHECK(devices > 0 && devices <= layers && all_shares > 0);
    const double all_bytes = std::accumulate(layer_bytes.begin(), layer_bytes.end(), 0.0);
    std::vector<LayerRange> ranges;
    double bytes = 0;  // of the layers before `end`
    double share = 0;
    int end = 0;
    for (int d = 0; d < devices; ++d) {
        const int begin = end;
        share += shares[static_cast<std::size_t>(d)];
        const double wanted = all_bytes * share / all_shares;
        const int last = layers - (devices - 1 - d);  // the devices behind need one each
        while (end < last) {
            const auto next = static_cast<double>(layer_bytes[static_cast<std::size_t>(end)]);
            const bool nearer = std::abs(bytes + next - wanted) <= std::abs(bytes - wanted);
            if (end > begin && !nearer && d + 1 < devices) break;
            bytes += next;
            ++end;
        }
        ranges.push_back({begin, end});
    }
    return ranges;
}

}  // namespace coterie::engine
