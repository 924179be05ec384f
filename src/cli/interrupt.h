#pragma once

namespace coterie::cli {

/// While one exists, Ctrl-C (SIGINT) asks the running answer to stop instead of ending the program; a second
/// one before the first was noticed ends it with status 130.
class InterruptGuard {
  public:
    InterruptGuard();
    ~InterruptGuard();
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;
};

bool interrupt_requested();
void clear_interrupt();

}  // namespace coterie::cli
