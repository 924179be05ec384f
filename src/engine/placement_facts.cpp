#include "engine/placement_facts.h"

#include <fmt/format.h>
#include <variant>

#include "models/token_cost.h"

namespace coterie::engine {
namespace {

using models::ExpertMatrix;
using models::MoeFfn;

std::int32_t index_of(std::vector<ExpertKind>& kinds, const ExpertKind& kind) {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (kinds[i].name == kind.name) return static_cast<std::int32_t>(i);
    }
    kinds.push_back(kind);
    return static_cast<std::int32_t>(kinds.size()) - 1;
}

void add_experts(const MoeFfn& ffn, expert_cache::LayerFacts& layer, std::vector<ExpertKind>& kinds) {
    layer.experts = static_cast<std::int32_t>(ffn.gate.data.size());
    layer.experts_used = static_cast<std::int32_t>(ffn.routing.used);
    for (const ExpertMatrix* matrix : {&ffn.gate, &ffn.up, &ffn.down}) {
        layer.expert_bytes += static_cast<std::uint64_t>(matrix->bytes_per_expert());
    }
    layer.kind = index_of(kinds, expert_kind(ffn));
}

void add_state(const StateLayout& layout, std::int64_t index, std::int64_t snapshots,
               expert_cache::LayerFacts& layer) {
    if (!layout.attends(index)) {
        layer.state_bytes =
            layout.recurrent_size(index) * sizeof(float) * static_cast<std::uint64_t>(1 + snapshots);
        return;
    }
    layer.kv_bytes_per_token = layout.keys(index).row_bytes;
    if (std::holds_alternative<KeyValueLayer>(layout.layer(index))) {
        layer.kv_bytes_per_token += layout.values(index).row_bytes;
    }
}

/// The scratch matrices of a step; what single operations keep besides is small against them.
std::uint64_t workspace_bytes(const models::Model& model, std::int64_t batch) {
    std::int64_t floats = 0;
    for (const std::int64_t width : model.workspace.widths()) floats += width;
    floats += model.extents.experts_used * model.extents.expert_ffn + model.extents.shared_ffn;
    return static_cast<std::uint64_t>(floats * batch) * sizeof(float);
}

}  // namespace

ExpertKind expert_kind(const MoeFfn& ffn) {
    const auto type = [](const ExpertMatrix& matrix) { return traits(matrix.type).name; };
    ExpertKind kind{.name = fmt::format("{}, {}, {} {} x {}", type(ffn.gate), type(ffn.up), type(ffn.down),
                                        ffn.gate.rows, ffn.gate.columns),
                    .multiply_adds = 0};
    for (const ExpertMatrix* matrix : {&ffn.gate, &ffn.up, &ffn.down}) {
        kind.multiply_adds += matrix->rows * matrix->columns;
    }
    return kind;
}

PlacementFacts placement_facts(const models::Model& model, const PlacementSetting& setting) {
    const StateLayout layout = model.state_layout(setting.cache);
    const models::TokenCost cost = models::token_cost(model);
    PlacementFacts facts;
    facts.model.embedding_bytes = static_cast<std::uint64_t>(model.token_embedding.bytes());
    facts.model.output_bytes = static_cast<std::uint64_t>(model.output.bytes());
    facts.model.workspace_bytes = workspace_bytes(model, setting.batch);
    facts.dense_multiply_adds = cost.layer_multiply_adds;
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        expert_cache::LayerFacts& layer = facts.model.layers.emplace_back();
        layer.dense_bytes = static_cast<std::uint64_t>(cost.layer_dense_bytes[i]);
        add_state(layout, static_cast<std::int64_t>(i), setting.snapshots, layer);
        if (const auto* moe = std::get_if<MoeFfn>(&model.layers[i].ffn)) {
            add_experts(*moe, layer, facts.kinds);
            facts.dense_multiply_adds -=
                layer.experts_used * facts.kinds[static_cast<std::size_t>(layer.kind)].multiply_adds;
        }
    }
    return facts;
}

}  // namespace coterie::engine
