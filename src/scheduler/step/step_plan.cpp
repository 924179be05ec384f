#include "scheduler/step/step_plan.h"

#include <algorithm>

namespace coterie::scheduler {
namespace {

void add_answers(std::span<const Work> answers, std::int64_t& room, std::uint64_t turn,
                 std::vector<PlannedSlice>& plan) {
    for (std::size_t i = 0; i < answers.size() && room > 0; ++i) {
        const Work& work = answers[(i + turn) % answers.size()];
        const std::int64_t tokens = std::min(work.tokens, room);
        plan.push_back({work.slot, tokens});
        room -= tokens;
    }
}

/// So many of the work's tokens that they end on the grid: at most `tokens`, or more where that is needed to
/// reach it.
std::int64_t to_grid(const Work& work, std::int64_t tokens, std::int64_t room, std::int64_t grid) {
    if (tokens == work.tokens) return tokens;
    const std::int64_t end = (work.position + tokens) / grid * grid;
    if (end > work.position) return end - work.position;
    const std::int64_t whole = std::min(end + grid - work.position, work.tokens);
    return whole <= room ? whole : 0;
}

void add_prompts(std::span<const Work> prompts, std::int64_t room, std::int64_t grid,
                 std::vector<PlannedSlice>& plan) {
    if (prompts.empty() || room <= 0) return;
    const auto count = static_cast<std::int64_t>(prompts.size());
    const std::int64_t share = std::max<std::int64_t>(room / count, 1);
    std::vector<std::int64_t> tokens;
    for (const Work& work : prompts) {
        tokens.push_back(to_grid(work, std::min({work.tokens, share, room}), room, grid));
        room -= tokens.back();
    }
    for (std::size_t i = 0; i < prompts.size() && room > 0; ++i) {
        const std::int64_t most = std::min(prompts[i].tokens, tokens[i] + room);
        const std::int64_t wanted = std::max(tokens[i], to_grid(prompts[i], most, most, grid));
        room -= wanted - tokens[i];
        tokens[i] = wanted;
    }
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        if (tokens[i] > 0) plan.push_back({prompts[i].slot, tokens[i]});
    }
}

}  // namespace

std::vector<PlannedSlice> plan_step(std::span<const Work> work, const StepLimits& limits,
                                    std::uint64_t turn) {
    std::vector<Work> answers;
    std::vector<Work> prompts;
    for (const Work& one : work) (one.answering ? answers : prompts).push_back(one);
    std::vector<PlannedSlice> plan;
    std::int64_t room = limits.batch;
    add_answers(answers, room, turn, plan);
    if (!answers.empty()) room = std::min(room, std::max(limits.prompt_chunk, limits.grid));
    add_prompts(prompts, room, limits.grid, plan);
    if (plan.empty()) add_prompts(prompts, room, 1, plan);  // a step smaller than the grid
    return plan;
}

}  // namespace coterie::scheduler
