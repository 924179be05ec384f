#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/forward/layer_range.h"

namespace coterie::engine {

/// Cuts a model's layers into one range a device, in order, so that each device's part of the bytes comes as
/// near as whole layers allow to its part of `shares`. Every device gets a layer.
/// `layer_bytes`: [layers]; `shares`: [devices], none negative, not all 0, at most as many as layers. A
/// device whose share is 0 gets as little as possible.
std::vector<LayerRange> split_layers(std::span<const std::uint64_t> layer_bytes,
                                     std::span<const double> shares);

}  // namespace coterie::engine
