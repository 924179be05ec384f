#pragma once

#include <memory>
#include <string>

#include "cli/placement_flags.h"
#include "gguf/archive.h"

namespace CLI {
class App;
}

namespace coterie::engine {
class Engine;
struct EngineOptions;
}  // namespace coterie::engine

namespace coterie::cli {

struct ModelOptions;

/// The flags that say which devices hold experts and how their cache goes about it.
struct OffloadFlags {
    PlacementFlags placement;
    enum class Profile {
        Learns,  ///< is read and counts this run
        Reads,   ///< measurements and calibration must not teach it
    } profile = Profile::Learns;
    std::string policy = "admit";
    std::string prefetch = "off";
};

void add_offload_flags(CLI::App& command, OffloadFlags& flags);

/// Plans the placement and turns it into the engine's devices and prompt windows; no devices where none are
/// asked for, or where the plan says that they cannot pay (with one line). Throws what a refused plan says,
/// and InvalidArgument naming the flag.
void add_offload(const gguf::Archive& archive, const ModelOptions& options, engine::EngineOptions& engine);

/// Saves the routing profile that a run has learnt, where --cache-profile or its default says; `Now`: at the
/// end, else every ten minutes. Only a file that the flag named must be written: then throws Io.
enum class SaveProfile { IfDue, Now };
void save_profile(engine::Engine& engine, const OffloadFlags& flags, SaveProfile when);

/// For --stats: lines on hits, bytes and predictions; empty without devices.
std::string describe_offload(engine::Engine& engine);

}  // namespace coterie::cli
