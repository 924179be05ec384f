#include "engine/forward/cuda/miss_server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <optional>

#include "base/error.h"

namespace coterie::engine {
namespace {

std::int64_t bytes_per_expert(const models::MoeFfn& ffn) {
    return ffn.gate.bytes_per_expert() + ffn.up.bytes_per_expert() + ffn.down.bytes_per_expert();
}

}  // namespace

MissServer::MissServer(const WeightList& list, const HostMailbox& mailbox, const ResidentTable& residents,
                       const LinkPath& link, ExpertPass& pass, std::int64_t max_tokens, std::int64_t width)
    : list_(list),
      mailbox_(mailbox),
      residents_(residents),
      link_(link),
      pass_(pass),
      max_tokens_(max_tokens),
      width_(width),
      inputs_(static_cast<std::size_t>(max_tokens)) {
    std::int64_t experts = 0;
    std::int64_t used = 0;
    for (const models::MoeFfn* ffn : list.experts) {
        if (ffn == nullptr) continue;
        experts = std::max(experts, ffn->routing.experts);
        used = std::max(used, ffn->routing.used);
    }
    counts_.resize(static_cast<std::size_t>(experts + 1));
    handed_.resize(static_cast<std::size_t>(max_tokens * used));
    plan_.jobs.reserve(static_cast<std::size_t>(experts));
    plan_.tokens.reserve(static_cast<std::size_t>(max_tokens * used));
    plan_.per_token = 0;
}

bool MissServer::serve(std::uint64_t number, std::int64_t tokens, expert_cache::ExpertCache* cache,
                       DeviceCounts& counts) {
    const cuda::Mailbox& mailbox = mailbox_.view();
    if (const std::uint64_t request = *mailbox.request; request > answered_) {
        std::atomic_thread_fence(std::memory_order_acquire);
        answer(static_cast<int>(request % cuda::kEpochsPerStep) - 1, tokens, cache, counts);
        std::atomic_thread_fence(std::memory_order_release);
        *mailbox.reply = answered_ = request;
        return false;
    }
    if (*mailbox.done < number) return false;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (*mailbox.failed / cuda::kEpochsPerStep == number) {
        fail(ErrorCode::Internal,
             "the CPU did not answer the GPU within a second; the machine may be overloaded");
    }
    return true;
}

double MissServer::seconds_per_expert(int layer, std::int64_t first, std::int64_t count) {
    const models::MoeFfn& ffn = *list_.experts[static_cast<std::size_t>(layer)];
    const ThreadPool::Awake awake(pass_.pool());
    inputs_[0] = mailbox_.input(0, ffn.gate.columns);
    plan_.tokens.assign(1, 0);
    std::vector<double> seconds;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t e = (first + i) % ffn.routing.experts;
        plan_.jobs.assign(1, {static_cast<std::int32_t>(e), expert_tensor(ffn.gate, e),
                              expert_tensor(ffn.up, e), expert_tensor(ffn.down, e), ffn.activation, 0, 1});
        const auto start = std::chrono::steady_clock::now();
        pass_.compute(cpu::kernels(), plan_, plan_.jobs, {inputs_.data(), 1}, mailbox_.view().outputs,
                      width_);
        seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(count / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return *middle;
}

void MissServer::release() { *mailbox_.view().reply = std::numeric_limits<std::uint64_t>::max(); }

void MissServer::recover() {
    answered_ = *mailbox_.view().request;
    *mailbox_.view().reply = answered_;
}

void MissServer::answer(int layer, std::int64_t tokens, expert_cache::ExpertCache* cache,
                        DeviceCounts& counts) {
    const auto start = std::chrono::steady_clock::now();
    plan(layer, tokens);
    const models::MoeFfn& ffn = *list_.experts[static_cast<std::size_t>(layer)];
    for (std::int64_t t = 0; t < tokens; ++t)
        inputs_[static_cast<std::size_t>(t)] = mailbox_.input(t, ffn.gate.columns);
    counts.missed += plan_.tokens.size();
    counts.cpu_bytes += plan_.jobs.size() * static_cast<std::uint64_t>(bytes_per_expert(ffn));
    ++counts.layers_with_misses;
    std::optional<expert_cache::CpuReading::Scope> reading;
    if (cache != nullptr) reading.emplace(cache->cpu_reading());
    pass_.compute(cpu::kernels(), plan_, plan_.jobs, {inputs_.data(), static_cast<std::size_t>(tokens)},
                  mailbox_.view().outputs, width_);
    counts.cpu_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The pairs that the device left to the host: `kernels/cuda/route.cu`'s choice.
void MissServer::mark_handed(int layer, std::span<const std::int32_t> experts,
                             std::span<const std::uint64_t> slots, std::int64_t tokens) {
    const auto missing = [&](std::int32_t expert) { return slots[static_cast<std::size_t>(expert)] == 0; };
    const auto misses = std::count_if(experts.begin(), experts.end(), missing);
    const cuda::LinkShare share = link_.share(layer, tokens);
    int linked = tokens == 1 ? share.of[misses] : 0;
    for (std::size_t pair = 0; pair < experts.size(); ++pair)
        handed_[pair] = missing(experts[pair]) && --linked < 0;
}

/// The pairs of a layer that were handed over, in the order of (expert, pair), which the mailbox's outputs
/// have (kernels/cuda/moe.h); the mailbox learns each pair's row.
void MissServer::plan(int layer, std::int64_t tokens) {
    const models::MoeFfn& ffn = *list_.experts[static_cast<std::size_t>(layer)];
    const std::int64_t used = ffn.routing.used;
    const std::span<const std::uint64_t> slots = residents_.host_layer(layer);
    const std::int32_t* experts = mailbox_.view().experts + layer * max_tokens_ * used;
    mark_handed(layer, {experts, static_cast<std::size_t>(tokens * used)}, slots, tokens);
    std::fill(counts_.begin(), counts_.end(), 0);
    for (std::int64_t pair = 0; pair < tokens * used; ++pair) {
        if (handed(pair)) ++counts_[static_cast<std::size_t>(experts[pair]) + 1];
    }
    plan_.jobs.clear();
    for (std::int64_t e = 0; e < ffn.routing.experts; ++e) {
        const auto i = static_cast<std::size_t>(e);
        const std::int64_t count = counts_[i + 1];
        counts_[i + 1] += counts_[i];
        if (count == 0) continue;
        plan_.jobs.push_back({static_cast<std::int32_t>(e), expert_tensor(ffn.gate, e),
                              expert_tensor(ffn.up, e), expert_tensor(ffn.down, e), ffn.activation,
                              counts_[i], count});
    }
    plan_.tokens.resize(static_cast<std::size_t>(counts_[static_cast<std::size_t>(ffn.routing.experts)]));
    for (std::int64_t pair = 0; pair < tokens * used; ++pair) {
        if (!handed(pair)) continue;
        const std::int64_t place = counts_[static_cast<std::size_t>(experts[pair])]++;
        plan_.tokens[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(pair / used);
        mailbox_.view().rows[pair] = static_cast<std::int32_t>(place);
    }
}

}  // namespace coterie::engine
