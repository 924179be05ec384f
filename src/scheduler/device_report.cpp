#include "scheduler/device_report.h"

#include "engine/engine.h"
#include "engine/forward/device_forward.h"
#include "engine/offload.h"

namespace coterie::scheduler {
namespace {

DeviceReport::Device report_gpu(const engine::DeviceCounts& did) {
    DeviceReport::Device device;
    device.streamed_bytes = did.streamed_bytes;
    device.hand_offs = {.layers = did.layers_with_misses,
                        .posting_seconds = did.posting_seconds,
                        .waiting_seconds = did.waiting_seconds,
                        .reading_seconds = did.reading_seconds};
    return device;
}

}  // namespace

DeviceReport report_devices(engine::Engine& engine) {
    DeviceReport report;
    if (engine.device() != nullptr) {
        for (const engine::DeviceCounts& did : engine.device()->statistics().devices)
            report.devices.push_back(report_gpu(did));
    }
    if (const engine::Offload* offload = engine.offload()) {
        for (const auto& spec : offload->options().fake_devices) {
            DeviceReport::Device& device = report.devices.emplace_back();
            if (spec.link_rate > 0) device.link_bytes_per_second = spec.link_rate;
        }
    }
    return report;
}

}  // namespace coterie::scheduler
