#pragma once

#include <string>
#include <vector>

#include "expert_cache/replay/replay.h"

namespace coterie::cli {

/// All results of one `coterie replay`.
struct ReplayReport {
    std::string trace;  ///< its file
    expert_cache::TraceHeader header;
    std::int64_t tokens = 0;
    expert_cache::ReplayCosts costs;
    std::vector<expert_cache::ReplayResult> results;  ///< by slots, then by policy
};

enum class ReplayFormat { Table, Csv, Json };

/// table, csv or json; throws InvalidArgument for anything else.
ReplayFormat replay_format(const std::string& name);

std::string render(const ReplayReport& report, ReplayFormat format);

/// Hit rates and modelled times over the slots, a line per policy, as SVG.
std::string render_plot(const ReplayReport& report);

}  // namespace coterie::cli
