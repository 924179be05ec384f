#include "base/error.h"
#include "devices/device.h"

// Stands in for the CUDA backend where it is not built.
namespace coterie {
namespace {

constexpr const char* kNote =
    "built without CUDA, which this version does not contain yet; where it does, install nvcc >= 12.1 and "
    "configure "
    "with -DCOTERIE_CUDA=ON";

}  // namespace

DeviceList list_devices() { return {.devices = {}, .note = kNote}; }

std::unique_ptr<Device> open_device(int index) {
    fail(ErrorCode::Unsupported, "cannot use device {}: {}", index, kNote);
}

}  // namespace coterie
