#include "devices/cuda/cuda_check.h"

#include "base/error.h"

namespace coterie::cuda_device {
namespace {

template <typename Function>
void find(const char* name, Function& function) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult status{};
#if CUDART_VERSION >= 12050
    constexpr unsigned kDriverVersion = 12000;
    check(cudaGetDriverEntryPointByVersion(name, &found, kDriverVersion, cudaEnableDefault, &status), name);
#else
    check(cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &status), name);
#endif
    if (status != cudaDriverEntryPointSuccess) {
        fail(ErrorCode::Unsupported, "the NVIDIA driver has no {}; install a newer driver", name);
    }
    function = reinterpret_cast<Function>(found);
}

DriverFunctions find_all() {
    DriverFunctions functions{};
    find("cuMemAddressReserve", functions.address_reserve);
    find("cuMemAddressFree", functions.address_free);
    find("cuMemCreate", functions.create);
    find("cuMemRelease", functions.release);
    find("cuMemMap", functions.map);
    find("cuMemUnmap", functions.unmap);
    find("cuMemSetAccess", functions.set_access);
    find("cuMemGetAllocationGranularity", functions.granularity);
    return functions;
}

}  // namespace

void check(cudaError_t result, std::string_view call) {
    if (result == cudaSuccess) return;
    const ErrorCode code = result == cudaErrorMemoryAllocation ? ErrorCode::OutOfMemory : ErrorCode::Internal;
    fail(code, "the GPU refused {}: {} ({})", call, cudaGetErrorString(result), cudaGetErrorName(result));
}

void check(CUresult result, std::string_view call) {
    if (result == CUDA_SUCCESS) return;
    const ErrorCode code = result == CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::OutOfMemory : ErrorCode::Internal;
    fail(code, "the GPU driver refused {} with error {}", call, static_cast<int>(result));
}

const DriverFunctions& driver() {
    static const DriverFunctions functions = find_all();
    return functions;
}

}  // namespace coterie::cuda_device
