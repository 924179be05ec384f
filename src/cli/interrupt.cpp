#include "cli/interrupt.h"

#include <array>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace coterie::cli {
namespace {

constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
constexpr int kStatusOfSignals = 128;  ///< and the signal's number, as shells say it

volatile std::sig_atomic_t g_interrupted = 0;
volatile std::sig_atomic_t g_ending = 0;    ///< the signal
volatile std::sig_atomic_t g_nothing = -1;  ///< /dev/null
std::array<struct sigaction, kSignals.size()> g_before;

void on_signal(int signal) {
    if (g_ending != 0 || (g_interrupted != 0 && signal == SIGINT)) _exit(kStatusOfSignals + signal);
    g_interrupted = 1;
    if (signal == SIGINT) return;
    g_ending = signal;
    // A read that waits returns for the signal; one that begins just now must not wait.
    dup2(g_nothing, STDIN_FILENO);
}

}  // namespace

InterruptGuard::InterruptGuard() {
    g_interrupted = 0;
    g_ending = 0;
    g_nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct sigaction action = {};
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    for (const int signal : kSignals) sigaddset(&action.sa_mask, signal);
    action.sa_flags = 0;  // no SA_RESTART: a waiting read returns, so that the chat sees it
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
        sigaction(kSignals[i], nullptr, &g_before[i]);
        if (g_before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
    }
}

InterruptGuard::~InterruptGuard() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &g_before[i], nullptr);
    close(g_nothing);
}

bool interrupt_requested() { return g_interrupted != 0; }
void clear_interrupt() { g_interrupted = g_ending != 0 ? 1 : 0; }
int ending_signal() { return g_ending; }

}  // namespace coterie::cli
