#pragma once

#include "base/thread_pool.h"
#include "devices/device.h"
#include "engine/probe/machine_profile.h"
#include "engine/probe/probe_experts.h"

/// In builds without CUDA all of these throw Unsupported.
namespace coterie::engine {

/// The link's rates and the hand-off, without experts; about two seconds. `pool`: the CPU's threads, which
/// read RAM beside the link. Throws Internal where the GPU fails or does not ask, OutOfMemory.
GpuTimes measure_gpu(const DeviceInfo& gpu, ThreadPool& pool);

/// One expert of one token that GPU `index` reads over the link, out of several that it computes together; 0
/// where the system does not pin the experts' memory or the GPU has no products with their types.
double seconds_per_linked_expert(int index, const ProbeExperts& experts);

}  // namespace coterie::engine
