#include "expert_cache/simulation/simulated_machine.h"

#include <algorithm>
#include <limits>

namespace coterie::expert_cache {
namespace {

// Less than any transfer has, more than rounding leaves of one.
constexpr double kNothing = 1e-3;

}  // namespace

SimulatedMachine::Rates SimulatedMachine::rates() const {
    const double cpu = costs_.cpu.read_bytes_per_second;
    const double link = costs_.devices[0].link_bytes_per_second;
    const double ram = costs_.ram_bytes_per_second;
    const bool both = cpu_left_ > 0 && link_left_ > 0 && latency_left_ <= 0;
    if (!both) return {std::min(cpu, ram), std::min(link, ram)};
    if (cpu + link <= ram) return {cpu, link};
    if (link <= ram / 2) return {ram - link, link};
    if (cpu <= ram / 2) return {cpu, ram - cpu};
    return {ram / 2, ram / 2};
}

/// Gives the link its next transfer where it has none; false where there is nothing to move.
bool SimulatedMachine::begin_transfer() {
    if (link_left_ > 0) return true;
    fetching_ = fetches_left_ > 0;
    if (fetching_) {
        --fetches_left_;
        link_left_ = fetch_bytes_;
    } else if (cpu_left_ <= 0 && !uploads_.empty()) {
        link_left_ = std::min(chunk_bytes_, uploads_.front().bytes_left);
    } else {
        return false;
    }
    latency_left_ = costs_.devices[0].copy_seconds;
    return true;
}

double SimulatedMachine::seconds_to_event() const {
    double seconds = std::numeric_limits<double>::infinity();
    if (cpu_left_ > 0) seconds = cpu_left_ / rates().cpu;
    if (link_left_ <= 0) return seconds;
    return std::min(seconds, latency_left_ > 0 ? latency_left_ : link_left_ / rates().link);
}

void SimulatedMachine::advance(double seconds) {
    const Rates at = rates();
    now_ += seconds;
    if (cpu_left_ > 0) cpu_left_ -= seconds * at.cpu;
    if (cpu_left_ < kNothing) cpu_left_ = 0;
    if (link_left_ <= 0) return;
    if (latency_left_ > 0) {
        latency_left_ = std::max(latency_left_ - seconds, 0.0);
        if (latency_left_ < 1e-15) latency_left_ = 0;
        return;
    }
    const double moved = std::min(seconds * at.link, link_left_);
    link_left_ -= moved;
    if (!fetching_) uploads_.front().bytes_left -= moved;
    if (link_left_ < kNothing) end_transfer();
}

void SimulatedMachine::end_transfer() {
    link_left_ = 0;
    if (fetching_) {
        ++fetched_;
    } else if (uploads_.front().bytes_left < 1) {
        arrived_.push_back(uploads_.front());
        uploads_.pop_front();
    }
}

void SimulatedMachine::device_works(double seconds) {
    const double end = now_ + seconds;
    while (begin_transfer() && now_ + seconds_to_event() < end) advance(seconds_to_event());
    advance(end - now_);
}

void SimulatedMachine::run(const SimulatedStep& step) {
    double device_free = now_ + step.device_seconds;
    if (step.cpu_bytes <= 0 && step.fetches == 0) return device_works(step.device_seconds);
    const double handoff = costs_.cpu.handoff_seconds;
    device_works(handoff / 2);
    cpu_left_ = step.cpu_bytes;
    fetches_left_ = step.fetches;
    fetch_bytes_ = step.expert_bytes;
    fetched_ = 0;
    double cpu_done = now_;
    std::int32_t computed = 0;
    while (cpu_left_ > 0 || fetched_ < step.fetches) {
        begin_transfer();
        const bool cpu_busy = cpu_left_ > 0;
        advance(seconds_to_event());
        if (cpu_busy) cpu_done = now_;
        for (; computed < fetched_; ++computed)
            device_free = std::max(device_free, now_) + step.fetched_seconds;
    }
    const double cpu_back = step.cpu_bytes > 0 ? cpu_done + handoff / 2 : 0;
    device_works(std::max({device_free, cpu_back, now_}) - now_);
}

}  // namespace coterie::expert_cache
