#include "base/error.h"
#include "devices/device.h"

// Stands in for the CUDA backend where it is not built.
namespace coterie {
namespace {

constexpr const char* kNote =
    "this program was built without CUDA; install nvcc 12.1 or later and configure with -DCOTERIE_CUDA=ON";

}  // namespace

DeviceList list_devices() { return {.devices = {}, .note = kNote}; }

std::unique_ptr<Device> open_device(int index) {
    fail(ErrorCode::Unsupported, "cannot use device {}: {}", index, kNote);
}

}  // namespace coterie
