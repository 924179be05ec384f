#include "expert_cache/live/maintenance.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/log.h"
#include "expert_cache/live/admission.h"
#include "expert_cache/live/eviction.h"

namespace coterie::expert_cache {
namespace {

// A chunk of 1 MiB takes 40 us on a fast link.
constexpr auto kLook = std::chrono::microseconds(40);

/// Whether more is to be done for the device's uploads.
bool move_uploads_on(CacheState& state, DeviceCache& device) {
    const auto keep = [&](const UploadResult& result) { state.upload_results.push_back(result); };
    const bool more = device.uploader.pump(*device.maintained, keep);
    const std::lock_guard lock(state.mutex);
    for (const UploadResult& result : state.upload_results) settle_upload(state, device, result);
    state.upload_results.clear();
    if (device.uploader.stuck()) drop(state, device, "a copy does not end", Absence::ForGood);
    return more && !device.out.load();
}

/// A thread must not end by an exception; what is wrong has been said then, and the cache stays as it is.
void run_thread(CacheState& state) {
    try {
        while (!state.stopping.load()) {
            if (maintain_once(state)) {
                std::this_thread::sleep_for(kLook);
            } else {
                state.wake.acquire();
                state.woken.store(false);
            }
        }
    } catch (const std::exception& error) {
        log::error("the expert cache stops changing: {}", error.what());
    }
}

}  // namespace

void tidy(CacheState& state) {
    for (const auto& device : state.devices) {
        if (device->out.load()) take_back(state, *device);
        if (device->out.load()) continue;
        check_lost(state, *device);
        settle_fetches(state, *device);
        trim_all(state, *device);
        reclaim(state, *device);
    }
}

bool maintain_once(CacheState& state) {
    const std::lock_guard round(state.pumping);
    {
        const std::lock_guard lock(state.mutex);
        tidy(state);
    }
    bool more = false;
    for (const auto& device : state.devices) {
        // One that is out for now takes back what was under way.
        if (!device->lost.load()) more |= move_uploads_on(state, *device);
    }
    const std::lock_guard lock(state.mutex);
    for (const auto& device : state.devices) {
        reclaim(state, *device);
        more |= !device->out.load() && device->fetches_under_way + device->returns_under_way > 0;
    }
    return more;
}

bool maintain_until_idle(CacheState& state, Nanoseconds limit) {
    const Nanoseconds deadline = saturating_add(state.clock.now(), limit);
    while (maintain_once(state)) {
        if (state.clock.now() >= deadline) return false;
        wait_a_little(state);
    }
    return true;
}

void wait_a_little(CacheState& state) { state.clock.wait_until(state.clock.now() + kLook); }

void start_thread(CacheState& state) {
    state.thread = std::thread([&state] { run_thread(state); });
}

void stop_thread(CacheState& state) {
    if (!state.thread.joinable()) return;
    state.stopping.store(true);
    wake_thread(state);
    state.thread.join();
}

void wake_thread(CacheState& state) {
    if (state.thread.joinable() && !state.woken.exchange(true)) state.wake.release();
}

}  // namespace coterie::expert_cache
