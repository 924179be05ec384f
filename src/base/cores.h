#pragma once

#include <bitset>
#include <span>
#include <thread>
#include <vector>

/// Where threads run.
namespace coterie {

/// One processor number per physical core that this process may use, in ascending order; at least one.
std::vector<int> physical_cores();

/// Binds a thread to a core. A refusal (a container's policy) costs speed, not correctness.
void bind_to_core(std::thread& thread, int core);

/// A core for a thread that is not bound to one, beside threads that are. On the core of another busy thread
/// it would take turns with that one, milliseconds each, and the system is in no hurry to move it away.
class FreeCore {
  public:
    FreeCore() = default;  ///< nobody is bound
    /// `core` is for the thread, `taken` are those of others.
    FreeCore(int core, std::span<const int> taken);

    /// Moves the calling thread to its core if it is on another's now; where it may run stays as it is, and
    /// nothing happens where its core is no part of that. True where it was moved. Some nanoseconds where it
    /// need not be.
    bool settle() const;

  private:
    static constexpr std::size_t kMostCores = 1024;

    int core_ = 0;
    std::bitset<kMostCores> taken_;
};

}  // namespace coterie
