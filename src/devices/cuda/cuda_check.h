#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <string_view>

namespace coterie::cuda_device {

/// Throws what a failed call means: OutOfMemory, or Internal with the call and the driver's words.
void check(cudaError_t result, std::string_view call);
void check(CUresult result, std::string_view call);

/// The driver's functions for mapped address ranges, found at run time: programs start on machines without a
/// driver.
struct DriverFunctions {
    decltype(&cuMemAddressReserve) address_reserve;
    decltype(&cuMemAddressFree) address_free;
    decltype(&cuMemCreate) create;
    decltype(&cuMemRelease) release;
    decltype(&cuMemMap) map;
    decltype(&cuMemUnmap) unmap;
    decltype(&cuMemSetAccess) set_access;
    decltype(&cuMemGetAllocationGranularity) granularity;
};
const DriverFunctions& driver();

}  // namespace coterie::cuda_device
