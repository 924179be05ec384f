#pragma once

#include <chrono>
#include <sys/resource.h>

namespace coterie::engine {

/// Looks whether the system takes cores from this process while it lives: the kernel counts what threads did
/// not give up themselves.
class CrowdWatch {
  public:
    explicit CrowdWatch(bool& crowded) : crowded_(crowded) {}
    ~CrowdWatch() {
        const std::chrono::duration<double> lived = std::chrono::steady_clock::now() - start_;
        const double usual = kUsual + kUsualPerSecond * lived.count();
        if (static_cast<double>(preemptions() - before_) > usual) crowded_ = true;
    }
    CrowdWatch(const CrowdWatch&) = delete;
    CrowdWatch& operator=(const CrowdWatch&) = delete;

  private:
    // Of an idle system's own work; a core that is shared is taken away up to 250 times a second.
    static constexpr double kUsual = 10;
    static constexpr double kUsualPerSecond = 25;

    static long preemptions() {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        return usage.ru_nivcsw;
    }

    bool& crowded_;
    const long before_ = preemptions();
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace coterie::engine
