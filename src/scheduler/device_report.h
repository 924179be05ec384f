#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace coterie::engine {
class Engine;
}

namespace coterie::scheduler {

/// What an engine's devices tell beside what their cache counts. Since the start; nothing where it is not
/// measured.
struct DeviceReport {
    /// Layers whose missing experts a device handed to the CPU, and how long the device was busy with that.
    struct HandOffs {
        std::uint64_t layers = 0;
        double posting_seconds = 0.0;  ///< activations to RAM
        double waiting_seconds = 0.0;  ///< for the CPU, its own part being done
        double reading_seconds = 0.0;  ///< what the CPU computed
    };
    struct Device {
        std::optional<double> link_bytes_per_second;  ///< of the link from RAM
        std::optional<HandOffs> hand_offs;
        std::uint64_t streamed_bytes = 0;  ///< of prompts' experts, over the link, not kept
    };
    std::vector<Device> devices;
};

/// Only the thread that runs the engine's steps may ask.
DeviceReport report_devices(engine::Engine& engine);

}  // namespace coterie::scheduler
