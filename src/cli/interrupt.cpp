#include "cli/interrupt.h"

#include <csignal>
#include <unistd.h>

namespace coterie::cli {
namespace {

constexpr int kInterruptedStatus = 130;

volatile std::sig_atomic_t g_requested = 0;

void on_interrupt(int) {
    if (g_requested) _exit(kInterruptedStatus);
    g_requested = 1;
}

void install(void (*handler)(int)) {
    struct sigaction action = {};
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    action.sa_flags = 0;  // no SA_RESTART: a waiting read returns, so that the chat sees it
    sigaction(SIGINT, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
    g_requested = 0;
    install(on_interrupt);
}

InterruptGuard::~InterruptGuard() { install(SIG_DFL); }

bool interrupt_requested() { return g_requested != 0; }
void clear_interrupt() { g_requested = 0; }

}  // namespace coterie::cli
