#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "expert_cache/costs/costs.h"

namespace coterie::expert_cache {

/// An expert on its way to a device.
struct SimulatedUpload {
    std::int32_t layer;
    std::int32_t expert;
    double bytes_left;
};

/// What one layer's experts do after planning, on a machine with one device that is the layers' home.
struct SimulatedStep {
    double device_seconds;  ///< computing residents
    std::int32_t fetches;
    double fetched_seconds;  ///< computing one fetched expert
    double cpu_bytes;        ///< of experts that the CPU reads; 0: none
    double expert_bytes;
};

/// Time on a CPU, a link and a device that share RAM. The CPU's reading and one transfer over the link run at
/// once; each gets half of RAM's rate, or as much as it can use where that is less. Fetches go before
/// uploads. Uploads go in chunks; the CPU's reading holds the next chunk up, but not one that has begun.
class SimulatedMachine {
  public:
    SimulatedMachine(const Costs& costs, double chunk_bytes) : costs_(costs), chunk_bytes_(chunk_bytes) {}

    double now() const { return now_; }

    void upload(const SimulatedUpload& upload) { uploads_.push_back(upload); }
    std::size_t waiting_uploads() const { return uploads_.size(); }
    /// Those that arrived since the last call.
    std::vector<SimulatedUpload> take_arrived() { return std::exchange(arrived_, {}); }

    /// The device works alone; uploads go on.
    void device_works(double seconds);
    /// A layer's experts, until their results are at the device.
    void run(const SimulatedStep& step);

  private:
    struct Rates {
        double cpu;
        double link;
    };
    Rates rates() const;
    bool begin_transfer();
    double seconds_to_event() const;
    void advance(double seconds);
    void end_transfer();

    const Costs& costs_;
    const double chunk_bytes_;
    double now_ = 0;

    double cpu_left_ = 0;      ///< bytes
    double latency_left_ = 0;  ///< seconds, before the link's transfer moves
    double link_left_ = 0;     ///< bytes of the transfer or chunk that the link moves
    bool fetching_ = false;    ///< else an upload's chunk
    std::int32_t fetches_left_ = 0;
    double fetch_bytes_ = 0;
    std::int32_t fetched_ = 0;
    std::deque<SimulatedUpload> uploads_;
    std::vector<SimulatedUpload> arrived_;
};

}  // namespace coterie::expert_cache
