#include "cli/replay/trace_recorder.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "gguf/content_hash.h"
#include "gguf/expert_summary.h"

namespace coterie::cli {
namespace {

using expert_cache::TraceHeader;

TraceHeader header_of(const engine::Engine& engine) {
    TraceHeader header{.model_hash = gguf::content_hash(engine.archive()),
                       .experts = static_cast<std::int32_t>(engine.config().experts),
                       .used = 0,
                       .layers = {}};
    const auto summary = gguf::summarise_experts(engine.archive());
    const auto& layers = engine.model().layers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const auto* moe = std::get_if<models::MoeFfn>(&layers[i].ffn);
        if (!moe) continue;
        const auto layer = static_cast<std::int32_t>(i);
        header.used = std::max(header.used, static_cast<std::int32_t>(moe->routing.used));
        header.layers.push_back({.layer = layer, .expert_bytes = summary.at(layer).bytes_per_expert});
    }
    if (header.layers.empty()) {
        fail(ErrorCode::Unsupported, "{}: has no experts, so there is no routing to --trace",
             engine.archive().name());
    }
    return header;
}

std::vector<std::int32_t> places_of(const TraceHeader& header, std::size_t layers) {
    std::vector<std::int32_t> places(layers, -1);
    for (std::size_t i = 0; i < header.layers.size(); ++i) {
        places[static_cast<std::size_t>(header.layers[i].layer)] = static_cast<std::int32_t>(i);
    }
    return places;
}

}  // namespace

TraceRecorder::TraceRecorder(const std::string& path, const engine::Engine& engine)
    : writer_(path, header_of(engine)), places_(places_of(writer_.header(), engine.model().layers.size())) {
    const std::size_t per_row =
        writer_.header().layers.size() * static_cast<std::size_t>(writer_.header().used);
    experts_.assign(static_cast<std::size_t>(engine.window()) * per_row, -1);
}

void TraceRecorder::routed(int layer, std::int64_t row, std::span<const std::int32_t> experts,
                           std::span<const float>) {
    const TraceHeader& header = writer_.header();
    const auto layers = static_cast<std::int64_t>(header.layers.size());
    const std::int32_t place = places_[static_cast<std::size_t>(layer)];
    if (place == 0 && row == 0) write_step();  // a new step begins: the one before it is over
    if (place == 0) rows_ = row + 1;
    if (place == layers - 1) complete_rows_ = row + 1;
    std::copy(experts.begin(), experts.end(), experts_.begin() + (row * layers + place) * header.used);
}

void TraceRecorder::finish() {
    write_step();
    writer_.finish();
}

void TraceRecorder::write_step() {
    const bool whole = rows_ > 0 && complete_rows_ == rows_;
    const std::size_t per_row =
        writer_.header().layers.size() * static_cast<std::size_t>(writer_.header().used);
    if (whole) {
        for (std::size_t row = 0; row < static_cast<std::size_t>(rows_); ++row) {
            writer_.add(steps_, std::span(experts_).subspan(row * per_row, per_row));
        }
        ++steps_;
    }
    rows_ = 0;
    complete_rows_ = 0;
}

}  // namespace coterie::cli
