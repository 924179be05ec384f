#pragma once

namespace coterie {

/// Denies the calling process what a template worker never does: sockets, new processes, other processes'
/// memory and signals, opening a file to write, changes to the file system. Kept across exec. Needs
/// PR_SET_NO_NEW_PRIVS; does nothing on a kernel or machine type without such filters. Async-signal-safe.
void install_system_call_filter();

}  // namespace coterie
