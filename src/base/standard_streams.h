#pragma once

#include <string_view>

namespace coterie {

/// Writes text for people to standard error. Where that is closed or full the text is lost, and the program
/// goes on.
void say(std::string_view text);

/// Puts something in place of standard streams that are closed, so that no file which is opened later gets
/// their numbers and what is meant for them. Writing to an output that was closed fails.
void hold_standard_streams();

}  // namespace coterie
