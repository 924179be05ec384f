#pragma once

#include <cuda_runtime_api.h>
#include <string_view>

namespace coterie::cuda {

/// Throws what a failed call means: OutOfMemory, or Internal with the call and the driver's words.
void check(cudaError_t result, std::string_view call);

/// After a kernel's launch: whether it could be queued.
inline void check_launch(std::string_view kernel) { check(cudaGetLastError(), kernel); }

}  // namespace coterie::cuda
