#include "cli/replay/cost_flags.h"

#include <CLI/CLI.hpp>

#include "base/error.h"

namespace coterie::cli {
namespace {

double positive(const char* flag, double value) {
    if (value > 0.0 && value <= 1e9) return value;
    fail(ErrorCode::InvalidArgument, "{} {}: give a number above 0", flag, value);
}

double up_to(double highest, const char* flag, double value) {
    if (value >= 0.0 && value <= highest) return value;
    fail(ErrorCode::InvalidArgument, "{} {}: give a number from 0 to {}", flag, value, highest);
}

}  // namespace

void add_cost_flags(CLI::App& command, CostFlags& flags) {
    const auto add = [&](const char* name, double& value, const char* help) {
        command.add_option(name, value, help)->capture_default_str()->group("Machine");
    };
    add("--link", flags.link, "GB/s from RAM to the device");
    add("--ram-rate", flags.ram, "GB/s of RAM, shared by the CPU and uploads");
    add("--vram-rate", flags.vram, "GB/s of the device's memory");
    add("--handoff", flags.handoff, "us that a layer with a miss takes more");
    add("--upload-share", flags.upload_share, "share of a token's time that uploads may take of the link");
}

expert_cache::ReplayCosts checked_costs(const CostFlags& flags) {
    return {.link_rate = 1e9 * positive("--link", flags.link),
            .ram_rate = 1e9 * positive("--ram-rate", flags.ram),
            .vram_rate = 1e9 * positive("--vram-rate", flags.vram),
            .handoff = 1e-6 * up_to(1e6, "--handoff", flags.handoff),
            .upload_share = up_to(1.0, "--upload-share", flags.upload_share)};
}

}  // namespace coterie::cli
