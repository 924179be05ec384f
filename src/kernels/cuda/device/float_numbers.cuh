#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace coterie::cuda {

/// A stored weight as binary32, exactly.
__device__ __forceinline__ float number(float value) { return value; }
__device__ __forceinline__ float number(__half value) { return __half2float(value); }
__device__ __forceinline__ float number(__nv_bfloat16 value) { return __bfloat162float(value); }

}  // namespace coterie::cuda
