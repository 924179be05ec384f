#pragma once

namespace coterie::cli {

/// While one exists, Ctrl-C (SIGINT) asks the running answer to stop instead of ending the program; a second
/// one before the first was noticed ends it with status 130. SIGTERM and SIGHUP ask for the program's end:
/// they stop the answer too, and standard input ends. A second signal then ends it at once.
///
/// What was ignored when the program started (SIGHUP under nohup) stays ignored. One guard exists at a time.
class InterruptGuard {
  public:
    InterruptGuard();
    ~InterruptGuard();
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// Whether the running answer should stop.
bool interrupt_requested();
/// Forgets Ctrl-C, but no request for the program's end.
void clear_interrupt();

/// SIGTERM or SIGHUP, once one asked for the program's end; else 0.
int ending_signal();

}  // namespace coterie::cli
