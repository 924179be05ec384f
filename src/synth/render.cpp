#include <fmt/format.h>
#include <iterator>

#include "synth/synth.h"

namespace coterie::synth {
namespace {

/// "18.6 GB", "2.65 MB": three digits, decimal units as in file listings.
std::string bytes_text(double bytes) {
    constexpr std::string_view kUnits[] = {"B", "kB", "MB", "GB", "TB"};
    std::size_t unit = 0;
    while (bytes >= 999.5 && unit + 1 < std::size(kUnits)) {
        bytes /= 1000.0;
        ++unit;
    }
    if (unit == 0) return fmt::format("{:.0f} B", bytes);
    const int decimals = bytes < 9.995 ? 2 : bytes < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f} {}", bytes, decimals, kUnits[unit]);
}

std::string bytes_text(std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::string expert_size_text(const Plan& plan) {
    if (plan.smallest_expert_bytes == plan.largest_expert_bytes) {
        return bytes_text(plan.largest_expert_bytes);
    }
    return fmt::format("{} to {}", bytes_text(plan.smallest_expert_bytes),
                       bytes_text(plan.largest_expert_bytes));
}

}  // namespace

std::string render(const Plan& plan) {
    std::string text = fmt::format("{}: {}\n\n", plan.title, bytes_text(plan.file_bytes));
    const auto out = std::back_inserter(text);
    for (const PartSize& part : plan.parts) {
        fmt::format_to(out, "  {:<18} {:>9}  {:4.1f} %\n", part.name, bytes_text(part.bytes),
                       100.0 * static_cast<double>(part.bytes) / static_cast<double>(plan.file_bytes));
    }
    if (plan.expert_layers == 0) return text + "\nno layer has experts; take more layers\n";
    fmt::format_to(out, "\n{} layers of {} experts, {} used by a token; one expert is {}\n\n",
                   plan.expert_layers, plan.experts, plan.experts_used, expert_size_text(plan));
    text += "  experts cached      bytes  hits, static list  hits, LRU\n";
    for (const HitRate& rate : plan.hit_rates) {
        fmt::format_to(out, "  {:>12.0f} %  {:>9}  {:>15.1f} %  {:>7.1f} %\n", 100.0 * rate.share,
                       bytes_text(rate.share * static_cast<double>(plan.trunk_expert_bytes)),
                       100.0 * rate.static_list, 100.0 * rate.least_recently_used);
    }
    return text;
}

}  // namespace coterie::synth
