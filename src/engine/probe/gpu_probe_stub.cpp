#include "base/error.h"
#include "engine/probe/gpu_probe.h"

// Stands in where CUDA is not built: there is no GPU to measure.
namespace coterie::engine {

GpuTimes measure_gpu(const DeviceInfo& gpu, ThreadPool&) {
    fail(ErrorCode::Unsupported, "cannot measure GPU {}: {}", gpu.index, list_devices().note);
}

double seconds_per_linked_expert(int index, const ProbeExperts&) {
    fail(ErrorCode::Unsupported, "cannot measure GPU {}: {}", index, list_devices().note);
}

}  // namespace coterie::engine
