#include "expert_cache/costs/cost_averages.h"

#include <algorithm>

namespace coterie::expert_cache {
namespace {

constexpr double kObservationWeight = 1.0 / 32;
constexpr double kLargestError = 4;

/// `seconds` as far as one observation is believed.
double believed(double seconds, double predicted) {
    return std::clamp(seconds, predicted / kLargestError, predicted * kLargestError);
}

void move_time(double& seconds, double observed) {
    seconds += kObservationWeight * (std::max(observed, 0.0) - seconds);
}

/// Averages the time of a byte, not the rate: a slow copy then weighs as much as a fast one of its length.
void move_rate(double& rate, double bytes, double observed) {
    double seconds_per_byte = 1 / rate;
    move_time(seconds_per_byte, observed / bytes);
    rate = 1 / seconds_per_byte;
}

/// Experts of one kind: reading, computing or the fixed part, whichever the costs think is largest.
void move_expert(double& rate, ComputeCosts& compute, std::int64_t experts, std::int64_t rows,
                 std::uint64_t bytes, double seconds) {
    const auto count = static_cast<double>(experts);
    const auto row_count = static_cast<double>(rows);
    const auto byte_count = static_cast<double>(bytes);
    const double fixed = count * compute.expert_seconds;
    const double reading = byte_count / rate;
    const double computing = row_count * compute.row_seconds;
    const double variable = std::max(reading, computing);
    const double observed = believed(seconds, fixed + variable);
    if (fixed > variable) {
        move_time(compute.expert_seconds, (observed - variable) / count);
    } else if (observed <= fixed) {  // nothing left that could be a rate
        move_time(compute.expert_seconds, 0);
    } else if (reading >= computing) {
        move_rate(rate, byte_count, observed - fixed);
    } else {
        move_time(compute.row_seconds, (observed - fixed) / row_count);
    }
}

/// A time of 0 is an assumption like any other: the first observation replaces it.
void move_handoff(double& handoff, double seconds) {
    if (handoff == 0) {
        handoff = std::max(seconds, 0.0);
    } else {
        move_time(handoff, believed(seconds, handoff));
    }
}

}  // namespace

void CostAverages::copied(std::size_t device, std::uint64_t bytes, double seconds, RamUse ram) {
    DeviceCosts& at = costs_.devices[device];
    double& rate = ram == RamUse::Alone ? at.link_bytes_per_second : at.contended_link_bytes_per_second;
    const auto byte_count = static_cast<double>(bytes);
    const double moving = byte_count / rate;
    const double observed = believed(seconds, at.copy_seconds + moving);
    if (at.copy_seconds > moving || observed <= at.copy_seconds) {
        move_time(at.copy_seconds, observed - moving);
    } else {
        move_rate(rate, byte_count, observed - at.copy_seconds);
    }
}

void CostAverages::cpu_computed(std::size_t kind, std::int64_t experts, std::int64_t rows,
                                std::uint64_t bytes, double seconds) {
    move_expert(costs_.cpu.read_bytes_per_second, costs_.cpu.compute[kind], experts, rows, bytes, seconds);
}

void CostAverages::device_computed(std::size_t device, std::size_t kind, std::int64_t experts,
                                   std::int64_t rows, std::uint64_t bytes, double seconds) {
    DeviceCosts& at = costs_.devices[device];
    move_expert(at.memory_bytes_per_second, at.compute[kind], experts, rows, bytes, seconds);
}

void CostAverages::cpu_handed_off(double seconds) { move_handoff(costs_.cpu.handoff_seconds, seconds); }

void CostAverages::device_handed_off(std::size_t device, double seconds) {
    move_handoff(costs_.devices[device].handoff_seconds, seconds);
}

}  // namespace coterie::expert_cache
