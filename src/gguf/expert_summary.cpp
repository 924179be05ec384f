#include "gguf/expert_summary.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace coterie::gguf {
namespace {

/// A name such as blk.3.ffn_gate_exps.weight or blk.3.ffn_gate.7.weight in its parts.
struct ExpertTensorName {
    std::int64_t layer;
    std::string_view matrix;  ///< "ffn_gate"
    bool is_weight;
    std::optional<std::int64_t> expert;  ///< where each expert has its own tensor
};

std::optional<std::int64_t> parse_number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
    return value;
}

/// Takes the text before the next dot off `rest`.
std::string_view take_part(std::string_view& rest) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    rest.remove_prefix(std::min(dot + 1, rest.size()));
    return part;
}

std::optional<ExpertTensorName> parse_name(std::string_view name) {
    constexpr std::string_view kStacked = "_exps";
    if (take_part(name) != "blk") return std::nullopt;
    const auto layer = parse_number(take_part(name));
    std::string_view matrix = take_part(name);
    if (!layer || !matrix.starts_with("ffn_")) return std::nullopt;
    std::optional<std::int64_t> expert;
    if (matrix.ends_with(kStacked)) {
        matrix.remove_suffix(kStacked.size());
    } else {
        expert = parse_number(take_part(name));
        if (!expert) return std::nullopt;
    }
    return ExpertTensorName{*layer, matrix, name == "weight", expert};
}

void add_type(std::string& types, std::string_view type) {
    if (types.find(type) != std::string::npos) return;
    types += types.empty() ? std::string(type) : ", " + std::string(type);
}

}  // namespace

std::map<std::int64_t, ExpertLayer> summarise_experts(const Archive& archive) {
    std::map<std::int64_t, ExpertLayer> layers;
    for (const Tensor& tensor : archive.tensors()) {
        const auto name = parse_name(tensor.name);
        if (!name) continue;
        ExpertLayer& layer = layers[name->layer];
        layer.bytes_per_expert += tensor.bytes.size();
        if (!name->is_weight) continue;
        layer.experts = std::max(layer.experts, name->expert ? *name->expert + 1 : tensor.slices());
        add_type(layer.types[std::string(name->matrix)], traits(tensor.type).name);
    }
    std::erase_if(layers, [](const auto& entry) { return entry.second.experts == 0; });
    for (auto& [number, layer] : layers) layer.bytes_per_expert /= static_cast<std::uint64_t>(layer.experts);
    return layers;
}

}  // namespace coterie::gguf
