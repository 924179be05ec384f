#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert_cache/slots/layer_shape.h"

namespace coterie::expert_cache {

/// One layer of a device when its memory is shared out.
struct Share {
    double weight;  ///< of the bytes
    std::uint64_t slot_bytes;
    std::int32_t capacity;
    std::int32_t slots = 0;  ///< the result
};

/// Gives each layer slots for its part of `bytes`, in whole granules; what layers with a slot for every
/// expert leave over goes to the others.
void share_out(std::span<Share> shares, std::uint64_t bytes, std::uint64_t granularity);

/// Whether all experts of a layer have a slot somewhere.
enum class Complete { No, Yes };

/// How many of `slots` slots are kept free: at most `wanted`, at most one in four but for very few slots, and
/// none where the layer is complete.
std::int32_t spare_of(std::int32_t slots, std::int32_t wanted, Complete layer);

}  // namespace coterie::expert_cache
