#include "cli/replay/report.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/replay/line_chart.h"
#include "expert_cache/policy/registry.h"

namespace coterie::cli {
namespace {

using expert_cache::ReplayResult;

double percent_of_experts(const ReplayReport& report, const ReplayResult& result) {
    return 100.0 * result.slots / report.header.experts;
}
double milliseconds(const ReplayResult& result) { return 1e3 * result.per_token(result.seconds); }
double uploads(const ReplayResult& result) { return result.per_token(static_cast<double>(result.uploads)); }
double megabytes(const ReplayResult& result) { return 1e-6 * result.per_token(result.upload_bytes); }

/// One expert's bytes, averaged over the layers.
double expert_bytes(const expert_cache::TraceHeader& header) {
    double sum = 0.0;
    for (const auto& layer : header.layers) sum += static_cast<double>(layer.expert_bytes);
    return sum / static_cast<double>(header.layers.size());
}

std::string render_table(const ReplayReport& report) {
    const auto& header = report.header;
    const auto& costs = report.costs;
    std::string text = fmt::format(
        "{}: {} tokens, {} layers of {} experts of {:.1f} KiB, {} used\n"
        "link {:g} GB/s, RAM {:g} GB/s, VRAM {:g} GB/s, hand-off {:g} us, uploads {:g} of the time\n\n",
        report.trace, report.tokens, header.layers.size(), header.experts, expert_bytes(header) / 1024.0,
        header.used, 1e-9 * costs.link_rate, 1e-9 * costs.ram_rate, 1e-9 * costs.vram_rate,
        1e6 * costs.handoff, costs.upload_share);
    text += "| slots | of experts | policy | hits | ms/token | uploads/token | MB/token |\n";
    text += "| ----: | ---------: | :----- | -----: | -------: | ------------: | -------: |\n";
    for (const ReplayResult& result : report.results) {
        fmt::format_to(std::back_inserter(text),
                       "| {:>5} | {:>8.1f} % | {:<6} | {:>4.1f} % | {:>8.3f} | {:>13.2f} | {:>8.3f} |\n",
                       result.slots, percent_of_experts(report, result), result.policy,
                       100.0 * result.hit_rate(), milliseconds(result), uploads(result), megabytes(result));
    }
    return text;
}

std::string render_csv(const ReplayReport& report) {
    std::string text =
        "slots,percent_of_experts,policy,hit_rate,ms_per_token,uploads_per_token,mb_per_token\n";
    for (const ReplayResult& result : report.results) {
        fmt::format_to(std::back_inserter(text), "{},{:.2f},{},{:.6f},{:.6f},{:.4f},{:.6f}\n", result.slots,
                       percent_of_experts(report, result), result.policy, result.hit_rate(),
                       milliseconds(result), uploads(result), megabytes(result));
    }
    return text;
}

nlohmann::ordered_json json_of(const expert_cache::TraceHeader& header) {
    auto layers = nlohmann::ordered_json::array();
    for (const auto& layer : header.layers) {
        layers.push_back({{"layer", layer.layer}, {"expert_bytes", layer.expert_bytes}});
    }
    return {{"model_hash", fmt::format("{:016x}", header.model_hash)},
            {"experts", header.experts},
            {"experts_used", header.used},
            {"layers", layers}};
}

std::string render_json(const ReplayReport& report) {
    nlohmann::ordered_json json = {{"trace", report.trace}, {"tokens", report.tokens}};
    json.update(json_of(report.header));
    json["costs"] = {{"link_gb_s", 1e-9 * report.costs.link_rate},
                     {"ram_gb_s", 1e-9 * report.costs.ram_rate},
                     {"vram_gb_s", 1e-9 * report.costs.vram_rate},
                     {"handoff_us", 1e6 * report.costs.handoff},
                     {"upload_share", report.costs.upload_share}};
    json["results"] = nlohmann::ordered_json::array();
    for (const ReplayResult& result : report.results) {
        json["results"].push_back({{"policy", result.policy},
                                   {"slots", result.slots},
                                   {"percent_of_experts", percent_of_experts(report, result)},
                                   {"hits", result.hits},
                                   {"uses", result.uses},
                                   {"hit_rate", result.hit_rate()},
                                   {"ms_per_token", milliseconds(result)},
                                   {"uploads_per_token", uploads(result)},
                                   {"mb_per_token", megabytes(result)}});
    }
    // A file name may hold bytes that are no text.
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

template <typename Value>
std::vector<ChartLine> lines(const ReplayReport& report, Value value) {
    std::vector<ChartLine> result;
    for (const ReplayResult& one : report.results) {
        auto line = std::find_if(result.begin(), result.end(),
                                 [&](const ChartLine& other) { return other.name == one.policy; });
        if (line == result.end()) {
            const auto needs = expert_cache::find_policy(one.policy).needs;
            result.push_back(
                {.name = one.policy, .points = {}, .dashed = needs != expert_cache::PolicyNeeds::Nothing});
            line = result.end() - 1;
        }
        line->points.push_back({percent_of_experts(report, one), value(one)});
    }
    return result;
}

}  // namespace

ReplayFormat replay_format(const std::string& name) {
    if (name == "table") return ReplayFormat::Table;
    if (name == "csv") return ReplayFormat::Csv;
    if (name == "json") return ReplayFormat::Json;
    fail(ErrorCode::InvalidArgument, "--output {}: supported are table, csv and json", name);
}

std::string render(const ReplayReport& report, ReplayFormat format) {
    if (format == ReplayFormat::Csv) return render_csv(report);
    if (format == ReplayFormat::Json) return render_json(report);
    return render_table(report);
}

std::string render_plot(const ReplayReport& report) {
    const std::string slots = "slots, % of the experts";
    const std::array charts{
        LineChart{.title = "Hits",
                  .x_label = slots,
                  .y_label = "% of all uses",
                  .lines = lines(report, [](const ReplayResult& r) { return 100.0 * r.hit_rate(); })},
        LineChart{.title = "Modelled time of the experts",
                  .x_label = slots,
                  .y_label = "ms per token",
                  .lines = lines(report, milliseconds)}};
    return render_svg(charts);
}

}  // namespace coterie::cli
