#include <algorithm>
#include <numeric>

#include "engine/forward/cpu_ops.h"
#include "engine/forward/hybrid/hybrid_experts.h"
#include "engine/forward/matmul_strip.h"

namespace coterie::engine {
namespace {

bool quantised(DataType type) { return traits(type).uses_quantised_activation; }

}  // namespace

void CpuOps::dense_ffn(const models::DenseFfn& ffn, models::Value x, models::Value out) {
    prepare_inputs(x, quantised(ffn.gate.type) || quantised(ffn.up.type));
    plan_.jobs.clear();
    plan_.tokens.resize(static_cast<std::size_t>(rows()));
    std::iota(plan_.tokens.begin(), plan_.tokens.end(), 0);
    plan_.contributions.clear();
    plan_.per_token = 1;
    for (std::int64_t t = 0; t < rows(); ++t) {
        plan_.contributions.push_back({static_cast<std::int32_t>(t), false, 1.0f});
    }
    plan_.jobs.push_back({kNotRouted, expert_tensor(ffn.gate), expert_tensor(ffn.up), expert_tensor(ffn.down),
                          models::FfnActivation::SwiGlu, 0, rows()});
    expert_pass_.run(kernels_, plan_, {inputs_.data(), static_cast<std::size_t>(rows())}, row(out, 0),
                     stride(out), out.width);
}

void CpuOps::moe_ffn(int layer, const models::MoeFfn& ffn, models::Value x, models::Value out) {
    const bool quantise =
        quantised(ffn.router.type) || quantised(ffn.gate.type) || quantised(ffn.up.type) ||
        (ffn.shared && (quantised(ffn.shared->gate.type) || quantised(ffn.shared->up.type)));
    prepare_inputs(x, quantise);
    route_tokens(layer, ffn);
    plan_experts(ffn);
    if (ffn.shared) add_shared_expert(ffn);
    const auto pairs = static_cast<std::size_t>(rows() * ffn.routing.used);
    if (hybrid_ != nullptr) {
        hybrid_->prefetch(layer, guess_next_layer(layer));
        hybrid_->run(layer, kernels_, plan_, {chosen_.data(), pairs},
                     static_cast<std::int32_t>(ffn.routing.used),
                     {inputs_.data(), static_cast<std::size_t>(rows())}, row(out, 0), stride(out));
        return;
    }
    expert_pass_.run(kernels_, plan_, {inputs_.data(), static_cast<std::size_t>(rows())}, row(out, 0),
                     stride(out), out.width);
}

void CpuOps::router_logits(const models::MoeFfn& ffn) {
    const cpu::Routing& routing = ffn.routing;
    constexpr std::int64_t kRows = 16;
    pool_.parallel_for((routing.experts + kRows - 1) / kRows, 1, [&](std::int64_t task, std::int64_t end) {
        for (; task < end; ++task) {
            const std::int64_t begin = task * kRows;
            matmul_strip(kernels_, ffn.router, ffn.router.bias.empty() ? nullptr : ffn.router.bias.data(),
                         begin, std::min(kRows, routing.experts - begin), inputs_.data(), rows(),
                         router_logits_.data() + begin, extents_.experts);
        }
    });
}

/// What the next layer's router would choose if its input were this layer's.
std::span<const std::int32_t> CpuOps::guess_next_layer(int layer) {
    const models::MoeFfn* next = hybrid_->router_to_guess(layer);
    if (next == nullptr) return {};
    router_logits(*next);
    const cpu::Routing& routing = next->routing;
    const float* bias = next->selection_bias.empty() ? nullptr : next->selection_bias.data();
    for (std::int64_t t = 0; t < rows(); ++t) {
        cpu::route(kernels_, routing, router_logits_.data() + t * extents_.experts, bias,
                   router_scratch_.data() + t * 3 * extents_.experts, guessed_.data() + t * routing.used,
                   guessed_weights_.data() + t * routing.used);
    }
    return {guessed_.data(), static_cast<std::size_t>(rows() * routing.used)};
}

void CpuOps::route_tokens(int layer, const models::MoeFfn& ffn) {
    const cpu::Routing& routing = ffn.routing;
    const float* bias = ffn.selection_bias.empty() ? nullptr : ffn.selection_bias.data();
    router_logits(ffn);
    for_rows(rows() * routing.experts * 8, [&](std::int64_t t) {
        cpu::route(kernels_, routing, router_logits_.data() + t * extents_.experts, bias,
                   router_scratch_.data() + t * 3 * extents_.experts, chosen_.data() + t * routing.used,
                   chosen_weights_.data() + t * routing.used);
        if (ffn.shared_gate) {
            float gate = 0.0f;
            const models::Matrix& weight = *ffn.shared_gate;
            matmul_strip(kernels_, weight, nullptr, 0, 1, &inputs_[static_cast<std::size_t>(t)], 1, &gate, 1);
            kernels_.sigmoid(&gate, 1, &shared_weights_[static_cast<std::size_t>(t)]);
        }
    });
    if (!step_->observer) return;
    const auto used = static_cast<std::size_t>(routing.used);
    for (std::int64_t t = 0; t < rows(); ++t) {
        step_->observer->routed(layer, t, {chosen_.data() + t * routing.used, used},
                                {chosen_weights_.data() + t * routing.used, used});
    }
}

void CpuOps::plan_experts(const models::MoeFfn& ffn) {
    // A counting sort of (token, rank) pairs by expert.
    const cpu::Routing& routing = ffn.routing;
    const std::int64_t pairs = rows() * routing.used;
    std::fill(expert_counts_.begin(), expert_counts_.end(), 0);
    for (std::int64_t i = 0; i < pairs; ++i)
        ++expert_counts_[static_cast<std::size_t>(chosen_[static_cast<std::size_t>(i)]) + 1];
    plan_.jobs.clear();
    for (std::int64_t e = 0; e < routing.experts; ++e) {
        const auto i = static_cast<std::size_t>(e);
        const std::int64_t count = expert_counts_[i + 1];
        expert_counts_[i + 1] += expert_counts_[i];
        if (count == 0) continue;
        plan_.jobs.push_back({static_cast<std::int32_t>(e), expert_tensor(ffn.gate, e),
                              expert_tensor(ffn.up, e), expert_tensor(ffn.down, e), ffn.activation,
                              expert_counts_[i], count});
    }
    plan_.per_token = routing.used + (ffn.shared ? 1 : 0);
    plan_.tokens.resize(static_cast<std::size_t>(rows() * plan_.per_token));
    plan_.contributions.resize(plan_.tokens.size());
    for (std::int64_t t = 0; t < rows(); ++t) {
        for (std::int64_t rank = 0; rank < routing.used; ++rank) {
            const auto pair = static_cast<std::size_t>(t * routing.used + rank);
            const std::int64_t place = expert_counts_[static_cast<std::size_t>(chosen_[pair])]++;
            plan_.tokens[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(t);
            plan_.contributions[static_cast<std::size_t>(t * plan_.per_token + rank)] = {
                static_cast<std::int32_t>(place), true, chosen_weights_[pair]};
        }
    }
}

void CpuOps::add_shared_expert(const models::MoeFfn& ffn) {
    const std::int64_t first = rows() * ffn.routing.used;
    for (std::int64_t t = 0; t < rows(); ++t) {
        plan_.tokens[static_cast<std::size_t>(first + t)] = static_cast<std::int32_t>(t);
        plan_.contributions[static_cast<std::size_t>((t + 1) * plan_.per_token - 1)] = {
            static_cast<std::int32_t>(first + t), ffn.shared_gate.has_value(),
            shared_weights_[static_cast<std::size_t>(t)]};
    }
    plan_.jobs.push_back({kNotRouted, expert_tensor(ffn.shared->gate), expert_tensor(ffn.shared->up),
                          expert_tensor(ffn.shared->down), ffn.activation, first, rows()});
}

}  // namespace coterie::engine
