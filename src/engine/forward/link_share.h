#pragma once

#include "kernels/cuda/moe.h"

namespace coterie::engine {

/// Seconds for one missing expert of a token.
struct MissCosts {
    double link = 0;  ///< the GPU reads it over the link while it computes
    double cpu = 0;   ///< the CPU computes it
    /// The same while the GPU reads others over the link: both read the same RAM. 0: as long as alone.
    double contended_cpu = 0;
    double hand_off = 0;  ///< the CPU is told and answers, once a layer
};

/// The shares that end first, the GPU's part and the CPU's side by side. The GPU gets a larger one only where
/// that is clearly sooner: uploads use the link too.
cuda::LinkShare cheapest_share(const MissCosts& costs);

}  // namespace coterie::engine
