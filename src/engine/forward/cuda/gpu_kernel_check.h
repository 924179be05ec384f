#pragma once

#include "devices/cuda/cuda_device.h"
#include "engine/forward/weight_collector.h"

namespace coterie::engine {

/// The start-up test of a GPU, as `cpu::self_test` is of the CPU: compares its kernels bit for bit with the
/// scalar law on small random values. Products with one, few and many tokens for every weight type of the
/// model, of dense weights and of experts; norm, quantisation, gate, attention over every type of cache; the
/// model's own routers, the sum of experts, and the kernels that do several of these in one. Takes less than
/// 100 ms beside what the first launches of kernels take anyway. Not compared: attention of whole prompt
/// cells, which is not the law's (docs/adr/0008-prompt-cells.md).
///
/// Throws Internal with the kernel's and the GPU's name at the first difference: a GPU that computes other
/// bits must not answer. Requires: the device is current, codebooks are prepared (MatmulKernels::prepare).
void check_gpu_kernels(CudaDevice& device, CudaStream& stream, const WeightList& list);

}  // namespace coterie::engine
