#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/probe/machine_profile.h"

namespace coterie::engine {

std::string profile_to_json(const MachineProfile& profile);

/// The file of this machine's profile in a folder: machines that share a home have one each.
std::string machine_profile_name(const MachineIdentity& machine);

/// A profile, or one line that says why there is none; no line where there simply is no file yet.
struct MachineProfileLoad {
    std::optional<MachineProfile> profile;
    std::string ignored;
};

/// Reads what `save_machine_profile` wrote. Whatever is wrong with the file, or where it is of another
/// machine, the program can measure again.
MachineProfileLoad load_machine_profile(const std::string& path, const MachineIdentity& machine);
/// The same of text; `name` is what the line calls it.
MachineProfileLoad parse_machine_profile(std::string_view text, const std::string& name,
                                         const MachineIdentity& machine);

/// Makes the folder where it is not there yet, and replaces the file when the new one is complete. Throws Io.
void save_machine_profile(const MachineProfile& profile, const std::string& path);

}  // namespace coterie::engine
