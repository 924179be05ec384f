#include "base/clock.h"

#include <thread>

namespace coterie {
namespace {

constexpr Nanoseconds kSpin = std::chrono::microseconds(60);

}  // namespace

Nanoseconds SteadyClock::now() const {
    return std::chrono::duration_cast<Nanoseconds>(std::chrono::steady_clock::now().time_since_epoch());
}

void SteadyClock::wait_until(Nanoseconds time) {
    const Nanoseconds left = time - now();
    if (left > kSpin) std::this_thread::sleep_for(left - kSpin);
    while (now() < time) std::this_thread::yield();
}

void SimulatedClock::wait_until(Nanoseconds time) {
    Nanoseconds::rep seen = now_.load();
    while (seen < time.count() && !now_.compare_exchange_weak(seen, time.count())) {
    }
}

Nanoseconds saturating_add(Nanoseconds time, Nanoseconds step) {
    if (step > Nanoseconds(0) && time > Nanoseconds::max() - step) return Nanoseconds::max();
    return time + step;
}

}  // namespace coterie
