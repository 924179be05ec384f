#pragma once

namespace coterie::cli {

/// Parses the command line, runs the command and returns the exit status. Never throws: an error is one line
/// on standard error.
int run_application(int argc, const char* const* argv);

}  // namespace coterie::cli
