#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "expert_cache/placement/facts.h"

namespace CLI {
class App;
}

namespace coterie::cli {

/// The flags that say what may go where.
struct PlacementFlags {
    std::vector<std::string> vram;  ///< one size for all devices, or one for each
    std::string ram;                ///< empty: what the machine has
    std::string expert_cache = "auto";
    bool cpu_moe = false;
    std::int64_t n_cpu_moe = 0;
    std::string override_tensor;  ///< llama.cpp's -ot: refused
    std::string profile;          ///< file; empty: none
    std::string fake_gpu;         ///< empty: none
    std::string residency = "auto";
    std::string window = "auto";  ///< tokens of a prompt's window, or "auto"
};

void add_placement_flags(CLI::App& command, PlacementFlags& flags);

/// What the flags ask for, for `devices` devices and `layers` layers. Throws InvalidArgument naming the flag.
/// Context and dense weights are left as they are by default.
expert_cache::PlacementRequest placement_request(const PlacementFlags& flags,
                                                 const std::vector<expert_cache::DeviceFacts>& devices,
                                                 std::int64_t layers);

}  // namespace coterie::cli
