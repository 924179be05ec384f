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

void add_prompts(std::span<const Work> prompts, std::int64_t room, std::vector<PlannedSlice>& plan) {
    if (prompts.empty() || room <= 0) return;
    const auto count = static_cast<std::int64_t>(prompts.size());
    const std::int64_t share = std::max<std::int64_t>(room / count, 1);
    const std::size_t first = plan.size();
    for (const Work& work : prompts) {
        const std::int64_t tokens = std::min({work.tokens, share, room});
        if (tokens > 0) plan.push_back({work.slot, tokens});
        room -= tokens;
    }
    for (std::size_t i = first; i < plan.size() && room > 0; ++i) {
        const std::int64_t more = std::min(prompts[i - first].tokens - plan[i].tokens, room);
        plan[i].tokens += more;
        room -= more;
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
    if (!answers.empty()) room = std::min(room, limits.prompt_chunk);
    add_prompts(prompts, room, plan);
    return plan;
}

}  // namespace coterie::scheduler
