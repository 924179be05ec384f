#include "cli/serve/signals.h"

#include <csignal>
#include <fmt/core.h>
#include <unistd.h>

namespace coterie::cli {
namespace {

constexpr int kEndedBySecondSignal = 130;

sigset_t end_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

}  // namespace

EndSignals::EndSignals() {
    const sigset_t set = end_signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    thread_ = std::thread([this] { watch(); });
}

EndSignals::~EndSignals() {
    stop_ = true;
    thread_.join();
    const sigset_t set = end_signals();
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void EndSignals::watch() {
    const sigset_t set = end_signals();
    const timespec patience{0, 100'000'000};
    while (!stop_) {
        if (sigtimedwait(&set, nullptr, &patience) < 0) continue;
        if (requested_) _exit(kEndedBySecondSignal);
        {
            const std::lock_guard lock(mutex_);
            requested_ = true;
        }
        came_.notify_all();
    }
}

void EndSignals::wait() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return requested_.load(); });
}

}  // namespace coterie::cli
