#include "base/cores.h"

#include <fstream>
#include <pthread.h>
#include <sched.h>
#include <set>
#include <string>

namespace coterie {
namespace {

cpu_set_t only(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    return set;
}

}  // namespace

std::vector<int> physical_cores() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {0};
    std::vector<int> cores;
    std::set<std::string> seen;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                           "/topology/thread_siblings_list");
        std::string siblings;
        if (!std::getline(file, siblings)) siblings = std::to_string(cpu);
        if (seen.insert(siblings).second) cores.push_back(cpu);
    }
    return cores.empty() ? std::vector<int>{0} : cores;
}

void bind_to_core(std::thread& thread, int core) {
    const cpu_set_t set = only(core);
    static_cast<void>(pthread_setaffinity_np(thread.native_handle(), sizeof set, &set));
}

FreeCore::FreeCore(int core, std::span<const int> taken) : core_(core) {
    for (const int other : taken) {
        if (static_cast<std::size_t>(other) < kMostCores) taken_.set(static_cast<std::size_t>(other));
    }
}

bool FreeCore::settle() const {
    if (taken_.none()) return false;
    const int now = sched_getcpu();
    if (now < 0 || static_cast<std::size_t>(now) >= kMostCores || !taken_.test(static_cast<std::size_t>(now)))
        return false;
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    const cpu_set_t target = only(core_);
    const pthread_t self = pthread_self();
    if (pthread_getaffinity_np(self, sizeof allowed, &allowed) != 0 || !CPU_ISSET(core_, &allowed) ||
        pthread_setaffinity_np(self, sizeof target, &target) != 0)
        return false;
    static_cast<void>(pthread_setaffinity_np(self, sizeof allowed, &allowed));
    return true;
}

}  // namespace coterie
