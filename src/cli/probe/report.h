#pragma once

#include <string>

#include "engine/probe/machine_profile.h"

namespace coterie::cli {

/// The numbers in groups, each with a sentence on what it means for tokens per second.
std::string render_text(const engine::MachineProfile& profile);

}  // namespace coterie::cli
