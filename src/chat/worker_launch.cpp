#include "chat/worker_launch.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/close_range.h>
#include <sched.h>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chat/system_call_filter.h"

namespace coterie {
namespace {

constexpr int kCannotRunStatus = 127;
constexpr int kChannelDescriptor = 3;

/// All that the child needs, made before the fork: between fork and exec it shares the parent's memory and
/// may only make system calls.
struct ChildPlan {
    const WorkerLaunch& launch;
    char* const* arguments;
    char* const* environment;
    pid_t parent;
};

void limit(__rlimit_resource resource, std::size_t value) {
    const rlimit both{value, value};
    setrlimit(resource, &both);
}

void place_descriptors(const WorkerLaunch& launch) {
    // Moved up first: any of the two may stand where the other has to go.
    const int program = fcntl(launch.program, F_DUPFD, 16);
    const int channel = fcntl(launch.channel, F_DUPFD, 16);
    const int null = open("/dev/null", O_RDWR);
    if (program < 0 || channel < 0 || null < 0) _exit(kCannotRunStatus - 1);
    const int nowhere = fcntl(null, F_DUPFD, 16);
    dup2(program, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    dup2(channel, kChannelDescriptor);
    syscall(SYS_close_range, kChannelDescriptor + 1, ~0U, 0U);
}

/// Best effort, in the order that needs it: namespaces are refused inside many containers, where the filter
/// still denies sockets; the death signal is lost when credentials change.
void confine(const ChildPlan& plan) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) unshare(CLONE_NEWNET);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan.parent) _exit(kCannotRunStatus - 1);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_NOFILE, 32);
    limit(RLIMIT_NPROC, 0);
    limit(RLIMIT_AS, plan.launch.memory_bytes);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    install_system_call_filter();
}

[[noreturn]] void run_child(const ChildPlan& plan) {
    place_descriptors(plan.launch);
    confine(plan);
    execve(plan.launch.python, plan.arguments, plan.environment);
    _exit(kCannotRunStatus);
}

pid_t fork_child(const ChildPlan& plan) {
    const pid_t child = vfork();
    if (child == 0) run_child(plan);
    return child;
}

}  // namespace

pid_t launch_worker(const WorkerLaunch& launch) {
    std::string python = launch.python;
    std::string cpu_seconds = fmt::format("{}", launch.cpu_seconds);
    std::string longest_answer = fmt::format("{}", launch.longest_answer_bytes);
    // -I and -S: nothing of the user's or the working folder's is imported; -B: no byte code is written.
    std::array<std::string, 4> fixed = {"-I", "-S", "-B", "-"};
    std::array<char*, 8> arguments = {python.data(),         fixed[0].data(), fixed[1].data(),
                                      fixed[2].data(),       fixed[3].data(), cpu_seconds.data(),
                                      longest_answer.data(), nullptr};
    const char* zone = std::getenv("TZ");  // for strftime_now
    std::string time_zone = std::string("TZ=") + (zone ? zone : "");
    std::array<char*, 2> environment = {zone ? time_zone.data() : nullptr, nullptr};

    const ChildPlan plan{.launch = launch,
                         .arguments = arguments.data(),
                         .environment = environment.data(),
                         .parent = getpid()};
    // A handler of this program must not run in the child, which shares its memory. The worker unblocks its
    // signals.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t child = fork_child(plan);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return child;
}

}  // namespace coterie
