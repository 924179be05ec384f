#pragma once

#include <cstddef>
#include <sys/types.h>

namespace coterie {

struct WorkerLaunch {
    const char* python;  ///< path of the interpreter
    double cpu_seconds;
    std::size_t longest_answer_bytes;
    std::size_t memory_bytes;
    int program;  ///< becomes the child's standard input
    int channel;  ///< becomes its descriptor 3
};

/// Starts the worker, confined before its first instruction: no descriptors but those above, no environment
/// but the time zone, limits on memory, files and processes, no new privileges, no network, and death with
/// the calling thread. Its memory is not copied (vfork), so a parent of hundreds of gigabytes starts it as
/// fast as a small one. Returns the child's id, or -1 where the system has none to give.
pid_t launch_worker(const WorkerLaunch& launch);

}  // namespace coterie
