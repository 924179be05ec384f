#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench/report.h"

namespace coterie::cli::bench {

/// The report for people, as `make_report` says: a table whose rows come as they are measured.
std::unique_ptr<Report> make_markdown(const std::vector<std::string>& columns, std::FILE* out);

}  // namespace coterie::cli::bench
