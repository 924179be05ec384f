#include "expert_cache/replay/replay_tokens.h"

namespace coterie::expert_cache {
namespace {

bool alone_in_its_step(const TraceReader& trace, std::int64_t token) {
    const auto same_step = [&](std::int64_t other) {
        return other >= 0 && other < trace.tokens() && trace.step(other) == trace.step(token);
    };
    return !same_step(token - 1) && !same_step(token + 1);
}

}  // namespace

ReplayTokens::ReplayTokens(const TraceReader& trace, PromptTokens prompts) : trace_(trace) {
    for (std::int64_t token = 0; token < trace.tokens(); ++token) {
        if (prompts == PromptTokens::Include || alone_in_its_step(trace, token)) records_.push_back(token);
    }
    const auto experts = static_cast<std::size_t>(header().experts);
    uses_.resize(header().layers.size() * experts);
    visit_uses([&](std::int64_t, std::size_t layer, std::size_t expert) {
        uses_[layer * experts + expert] += 1.0f;
    });
}

std::vector<std::int32_t> ReplayTokens::buffer() const {
    return std::vector<std::int32_t>(header().layers.size() * static_cast<std::size_t>(header().used));
}

std::span<const float> ReplayTokens::uses(std::size_t layer) const {
    const auto experts = static_cast<std::size_t>(header().experts);
    return std::span(uses_).subspan(layer * experts, experts);
}

std::vector<FutureUses> ReplayTokens::future() const {
    std::vector<FutureUses> result(header().layers.size(),
                                   FutureUses(static_cast<std::size_t>(header().experts)));
    visit_uses([&](std::int64_t token, std::size_t layer, std::size_t expert) {
        result[layer][expert].push_back(token);
    });
    return result;
}

template <typename Visit>
void ReplayTokens::visit_uses(Visit visit) const {
    std::vector<std::int32_t> experts = buffer();
    const auto used = static_cast<std::size_t>(header().used);
    for (std::int64_t token = 0; token < size(); ++token) {
        read(token, experts);
        for (std::size_t i = 0; i < experts.size(); ++i) {
            if (experts[i] >= 0) visit(token, i / used, static_cast<std::size_t>(experts[i]));
        }
    }
}

}  // namespace coterie::expert_cache
