#pragma once

#include <sys/resource.h>

namespace coterie::engine {

/// Looks whether the system takes cores from this process while it lives: the kernel counts what threads did
/// not give up themselves. It is set against the time that they ran, since a starved process is seldom there
/// to be interrupted.
class CrowdWatch {
  public:
    explicit CrowdWatch(bool& crowded) : crowded_(crowded) {}
    ~CrowdWatch() {
        const rusage after = usage();
        const double ran = cpu_seconds(after) - cpu_seconds(before_);
        const auto preemptions = static_cast<double>(after.ru_nivcsw - before_.ru_nivcsw);
        if (preemptions > kUsual + kUsualPerSecond * ran) crowded_ = true;
    }
    CrowdWatch(const CrowdWatch&) = delete;
    CrowdWatch& operator=(const CrowdWatch&) = delete;

  private:
    // Of an idle system's own work; a core that is shared is taken away about 250 times a second.
    static constexpr double kUsual = 5;
    static constexpr double kUsualPerSecond = 25;

    static rusage usage() {
        rusage now{};
        getrusage(RUSAGE_SELF, &now);
        return now;
    }
    static double cpu_seconds(const rusage& at) {
        return static_cast<double>(at.ru_utime.tv_sec + at.ru_stime.tv_sec) +
               1e-6 * static_cast<double>(at.ru_utime.tv_usec + at.ru_stime.tv_usec);
    }

    bool& crowded_;
    const rusage before_ = usage();
};

}  // namespace coterie::engine
