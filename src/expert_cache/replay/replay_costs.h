#pragma once

namespace coterie::expert_cache {

/// What a machine takes for the parts of a token. At first those of an RTX 3090 beside two channels of DDR4.
struct ReplayCosts {
    double link_rate = 24e9;     ///< bytes per second from RAM to the device
    double ram_rate = 42e9;      ///< bytes per second of all that reads RAM together
    double vram_rate = 936e9;    ///< bytes per second
    double handoff = 15e-6;      ///< seconds more that a layer takes as soon as the CPU computes a miss
    double upload_share = 0.25;  ///< of a token's time that the link may be busy with uploads
};

}  // namespace coterie::expert_cache
