#include "base/error.h"
#include "devices/device.h"
#include "engine/forward/device_forward.h"

// Stands in where no backend is built in.
namespace coterie::engine {

std::unique_ptr<DeviceForward> make_device_forward(const models::Model&, ExpertPass&, DeviceForwardOptions) {
    fail(ErrorCode::Unsupported, "cannot run on a GPU: {}", list_devices().note);
}

}  // namespace coterie::engine
