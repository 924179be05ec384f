#pragma once

#include <cstdint>

namespace coterie::expert_cache {

/// The experts of one layer as the cache sees them.
struct LayerShape {
    std::int32_t experts = 0;        ///< 0: the layer has none
    std::uint64_t expert_bytes = 0;  ///< gate, up and down together
};

}  // namespace coterie::expert_cache
