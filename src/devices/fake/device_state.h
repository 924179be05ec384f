#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "devices/fake/memory.h"
#include "devices/fake/timeline.h"
#include "devices/fake_spec.h"

namespace coterie::fake {

/// Faults that copies over the link are to meet, and calls of any kind. Numbers count down with each; 0:
/// never.
struct CopyFaults {
    int refuse_call = 0;
    int refuse = 0;
    int fail = 0;
    int lose = 0;
    double slowness = 1;
};

/// What a fake device, its streams and its memory share.
struct DeviceState {
    DeviceState(int number, const FakeDeviceSpec& given, Timeline& common)
        : index(number),
          spec(given),
          timeline(common),
          memory(number, given.memory_bytes, given.granularity_bytes),
          to_device(common.add_engine()),
          to_host(common.add_engine()) {}

    int index;
    FakeDeviceSpec spec;
    Timeline& timeline;
    Memory memory;
    int to_device;  ///< copy engines
    int to_host;
    std::mutex faults_mutex;
    CopyFaults faults;

    /// Throws Internal where it is.
    void check_not_lost();
    /// A call of a stream; throws Internal where the device is lost or is to refuse it.
    void take_call();
    /// A copy over the link, its faults counted. Throws Internal where it is to be refused.
    Operation link_copy(int engine, std::uint64_t bytes);
};

}  // namespace coterie::fake
