#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"

namespace coterie::expert_cache {

/// The experts of one layer as the cache sees them.
struct LayerShape {
    std::int32_t experts = 0;        ///< 0: the layer has none
    std::uint64_t expert_bytes = 0;  ///< gate, up and down together
};

/// The outcome of checked arithmetic on the sizes of experts.
inline std::uint64_t sized(std::optional<std::uint64_t> bytes) {
    if (!bytes) fail(ErrorCode::OutOfMemory, "the experts of a layer are larger than any address space");
    return *bytes;
}

}  // namespace coterie::expert_cache
