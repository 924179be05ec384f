#include "cli/plan/report.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/byte_size.h"
#include "expert_cache/costs/costs_json.h"

namespace coterie::cli::plan {
namespace {

using expert_cache::DevicePlan;
using expert_cache::LayerFacts;
using expert_cache::Placement;
using expert_cache::RamPlan;
using expert_cache::Strategy;
using Json = nlohmann::ordered_json;

const char* name_of(Strategy strategy) {
    switch (strategy) {
        case Strategy::CpuOnly:
            return "cpu";
        case Strategy::Static:
            return "static";
        case Strategy::Cache:
            return "cache";
        case Strategy::Resident:
            return "resident";
    }
    return "unknown";
}

std::string range_text(std::size_t first, std::size_t last) {
    return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

/// "20 in layers 1-7, 21 in layer 8": runs of equal numbers, without zeros.
std::string slots_text(const std::vector<std::int32_t>& slots) {
    std::string text;
    for (std::size_t first = 0; first < slots.size();) {
        std::size_t end = first + 1;
        while (end < slots.size() && slots[end] == slots[first]) ++end;
        if (slots[first] > 0) {
            text += fmt::format("{}{} in layer{} {}", text.empty() ? "" : ", ", slots[first],
                                end - first > 1 ? "s" : "", range_text(first, end - 1));
        }
        first = end;
    }
    return text.empty() ? "none" : text;
}

/// Where the hit rate comes from; whole layers hit whatever is used.
const char* basis_text(const Placement& placement) {
    if (placement.profiled) return ", from the profile";
    return placement.strategy == Strategy::Cache ? ", assuming that uses of experts fall as 1 / rank" : "";
}

std::string experts_text(const expert_cache::ModelFacts& facts) {
    std::size_t layers = 0;
    std::uint64_t bytes = 0;
    for (const LayerFacts& layer : facts.layers) {
        layers += layer.experts > 0 ? 1 : 0;
        bytes += layer.expert_bytes * static_cast<std::uint64_t>(layer.experts);
    }
    return fmt::format("{} layers, {} with experts of {} together", facts.layers.size(), layers,
                       byte_size_text(bytes));
}

const char* name_of(expert_cache::WindowLimit limit) {
    switch (limit) {
        case expert_cache::WindowLimit::Balance:
            return "balance";
        case expert_cache::WindowLimit::Prompt:
            return "prompt";
        case expert_cache::WindowLimit::Memory:
            return "memory";
    }
    return "unknown";
}

std::string window_line(const PromptWindow& window) {
    std::string text = fmt::format("prompts      in windows of {} tokens at most", window.tokens);
    if (!window.plan) return text + "\n";
    const expert_cache::WindowPlan& plan = *window.plan;
    return text + fmt::format(": of {}, missing experts stream in {:.3g} s, computing takes {:.3g} s\n",
                              plan.tokens, plan.stream_seconds, plan.compute_seconds);
}

Json window_json(const PromptWindow& window) {
    Json json{{"tokens", window.tokens}, {"limit", window.plan ? name_of(window.plan->limit) : "flag"}};
    if (window.plan) {
        json["planned_tokens"] = window.plan->tokens;
        json["stream_seconds"] = window.plan->stream_seconds;
        json["compute_seconds"] = window.plan->compute_seconds;
    }
    return json;
}

std::string row(std::string_view name, const std::vector<std::string>& cells) {
    std::string text = fmt::format("{:<12}", name);
    for (const std::string& cell : cells) text += fmt::format(" {:>11}", cell);
    return text + "\n";
}

std::string memory_table(const PlanReport& report) {
    std::string text =
        row("", {"dense", "context", "workspace", "experts", "pinned", "reserve", "unused", "from disk"});
    for (std::size_t i = 0; i < report.devices.size(); ++i) {
        const DevicePlan& device = report.placement.devices[i];
        text += row(report.devices[i].name,
                    {byte_size_text(device.dense_bytes), byte_size_text(device.kv_bytes),
                     byte_size_text(device.workspace_bytes), byte_size_text(device.slot_bytes), "",
                     byte_size_text(device.reserve_bytes), byte_size_text(device.unused_bytes), ""});
    }
    const RamPlan& ram = report.placement.ram;
    const std::uint64_t used =
        ram.dense_bytes + ram.kv_bytes + ram.workspace_bytes + ram.expert_bytes + ram.pinned_bytes;
    return text +
           row("RAM", {byte_size_text(ram.dense_bytes), byte_size_text(ram.kv_bytes),
                       byte_size_text(ram.workspace_bytes), byte_size_text(ram.expert_bytes),
                       byte_size_text(ram.pinned_bytes), "", byte_size_text(report.request.ram_bytes - used),
                       byte_size_text(ram.disk_bytes)});
}

std::string slot_lines(const PlanReport& report) {
    std::string text;
    for (std::size_t i = 0; i < report.devices.size(); ++i) {
        text += fmt::format("{:<12} experts per layer: {}\n", report.devices[i].name,
                            slots_text(report.placement.devices[i].slots));
    }
    return text;
}

Json device_json(const PlanReport& report, std::size_t index) {
    const DevicePlan& device = report.placement.devices[index];
    return {{"name", report.devices[index].name},
            {"free_bytes", report.devices[index].free_bytes},
            {"first_layer", device.first_layer},
            {"layer_count", device.layer_count},
            {"dense_bytes", device.dense_bytes},
            {"kv_bytes", device.kv_bytes},
            {"workspace_bytes", device.workspace_bytes},
            {"slot_bytes", device.slot_bytes},
            {"reserve_bytes", device.reserve_bytes},
            {"unused_bytes", device.unused_bytes},
            {"slots", device.slots}};
}

Json ram_json(const PlanReport& report) {
    const RamPlan& ram = report.placement.ram;
    return {{"allowed_bytes", report.request.ram_bytes},
            {"dense_bytes", ram.dense_bytes},
            {"kv_bytes", ram.kv_bytes},
            {"workspace_bytes", ram.workspace_bytes},
            {"expert_bytes", ram.expert_bytes},
            {"pinned_bytes", ram.pinned_bytes},
            {"disk_bytes", ram.disk_bytes}};
}

}  // namespace

std::string render_text(const PlanReport& report) {
    const Placement& placement = report.placement;
    std::string text = fmt::format("model        {}: {}\n", report.model, experts_text(report.facts));
    text += fmt::format("plan         {}: {}\n", name_of(placement.strategy), placement.reason);
    if (placement.strategy != Strategy::CpuOnly) {
        text += fmt::format("hits         {:.1f} % expected{}\n", 100 * placement.hit_rate,
                            basis_text(placement));
    }
    text += fmt::format("speed        {:.1f} tokens/s modelled, one token at a time, empty context\n",
                        1 / placement.seconds_per_token);
    text += window_line(report.window);
    if (placement.exclusive) text += "RAM          holds only the experts that no GPU holds\n";
    text += fmt::format("\n{}", memory_table(report));
    if (!report.devices.empty()) text += fmt::format("\n{}", slot_lines(report));
    return text;
}

std::string render_json(const PlanReport& report) {
    const Placement& placement = report.placement;
    Json json{{"model", report.model},
              {"strategy", name_of(placement.strategy)},
              {"reason", placement.reason},
              {"context", report.request.context},
              {"window", window_json(report.window)},
              {"exclusive", placement.exclusive},
              {"hit_rate", placement.hit_rate},
              {"hits_from", placement.profiled ? "profile" : "assumption"},
              {"layer_hit_rates", placement.layer_hit_rates},
              {"seconds_per_token", placement.seconds_per_token}};
    json["devices"] = Json::array();
    for (std::size_t i = 0; i < report.devices.size(); ++i) json["devices"].push_back(device_json(report, i));
    json["ram"] = ram_json(report);
    json["costs"] = Json::parse(expert_cache::costs_to_json(report.costs));
    return json.dump(2) + "\n";
}

}  // namespace coterie::cli::plan
