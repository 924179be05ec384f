#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/device.h"

namespace CLI {
class App;
}

namespace coterie::cli {

/// The flags that say which GPUs run a model, and how they share it.
struct GpuFlags {
    std::string layers = "auto";  ///< "auto", or a number: 0 leaves all to the CPU
    std::string devices = {};     ///< numbers or names such as CUDA1, or "none"; empty: all
    std::string split_mode = "layer";
    std::string shares = {};  ///< of the layers, one a GPU; empty: by their memory
    int main = -1;            ///< the one of --split-mode none; -1: the first
};

void add_gpu_flags(CLI::App& command, GpuFlags& flags);

/// The GPUs that run a model, in the order of its layers, and their shares (empty: by memory).
struct GpuChoice {
    std::vector<int> gpus;
    std::vector<double> shares;
};

/// No GPUs where the flags want none or there is none. Throws InvalidArgument or Unsupported naming the flag.
GpuChoice choose_gpus(const GpuFlags& flags, const DeviceList& list);

/// Tokens of a prompt that GPUs take through the layers together, without --window: many, because what a
/// layer lacks comes over the link once for all of them; fewer where the room for them would be missed, on
/// small GPUs and where a model (bytes, of all files) fits with little to spare. `limits`: of --vram, one a
/// GPU, or empty.
std::int64_t default_window(std::uint64_t model_bytes, std::span<const int> gpus,
                            std::span<const std::uint64_t> limits, const DeviceList& list);

/// The GPUs that a list such as "0,CUDA1" names; all for "", none for "none".
std::vector<DeviceInfo> named_gpus(std::string_view names, const DeviceList& list);

}  // namespace coterie::cli
