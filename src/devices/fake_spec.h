#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace coterie {

/// What a fake device is like. Rates are bytes per second; 0 means that it takes no time.
struct FakeDeviceSpec {
    std::uint64_t memory_bytes = 0;
    double link_rate = 0;    ///< each direction of its link to RAM
    Nanoseconds latency{0};  ///< added to each copy over the link
    double memory_rate = 0;  ///< of its own memory, for fills and copies on the device
    std::uint64_t granularity_bytes = std::uint64_t{64} << 10;
};

/// Reads "2x64M@1G/s:20us" or "64M@1G/s,32M@500M/s": memory, rate of the link and, optionally, its latency;
/// K, M and G are powers of 1024 for memory and of 1000 for rates. Throws InvalidArgument with one line.
std::vector<FakeDeviceSpec> parse_fake_devices(std::string_view text);

}  // namespace coterie
