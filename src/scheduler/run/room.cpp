// Runner's dealing with pages: who may have how many, and who gives some back.

#include <algorithm>

#include "base/error.h"
#include "scheduler/run/runner.h"

namespace coterie::scheduler {
namespace {

/// An answer is sure of this many more tokens when its job is admitted.
constexpr std::int64_t kReserveTokens = 64;

}  // namespace

/// Pages that a job should be able to have, those that it shares with another running one left out.
std::int64_t Runner::demand(const Job& job) const {
    if (engine_.layout().page_bytes() == 0) return 0;
    const std::int64_t most =
        job.prompt_tokens() + (job.request().max_tokens < 0 ? engine_.context() : job.request().max_tokens);
    const std::int64_t tokens =
        std::min({static_cast<std::int64_t>(job.tokens().size()) + kReserveTokens, most, engine_.context()});
    return pages_for(tokens) - job.shared_tokens / kPageTokens;
}

std::int64_t Runner::demand_of_running() const {
    std::int64_t pages = 0;
    for (const Slot& slot : slots_) {
        if (slot.job && slot.job->sequence) pages += demand(*slot.job);
    }
    return pages;
}

std::int64_t Runner::pages_wanted(const std::vector<PlannedSlice>& plan) const {
    std::int64_t pages = 0;
    for (const PlannedSlice& slice : plan) {
        pages += slots_[static_cast<std::size_t>(slice.slot)].job->sequence->pages_missing(slice.tokens);
    }
    return pages;
}

void Runner::drop_drafts(std::vector<PlannedSlice>& plan) {
    for (PlannedSlice& slice : plan) slice.tokens = std::min(slice.tokens, slot(slice.slot).job->lacking());
}

void Runner::make_room(std::vector<PlannedSlice>& plan) {
    if (pages_wanted(plan) > engine_.free_pages()) drop_drafts(plan);
    while (pages_wanted(plan) > engine_.free_pages()) {
        if (kept_.evict()) continue;
        suspend_youngest(plan);
    }
}

/// The youngest job gives its pages back; alone, it makes do with a smaller part of the step.
void Runner::suspend_youngest(std::vector<PlannedSlice>& plan) {
    std::vector<Slot*> holding = by_age();
    std::erase_if(holding, [](const Slot* slot) { return !slot->job->sequence; });
    COTERIE_CHECK(!holding.empty());
    if (holding.size() == 1) {
        COTERIE_CHECK(plan.front().tokens > 1);  // one sequence always fits: the pool holds a whole context
        plan.front().tokens /= 2;
        return;
    }
    Slot& youngest = *holding.back();
    running_.remove(youngest.job->number());
    youngest.job->sequence.reset();
    youngest.job->snapshots_wanted.clear();
    Counters::add(counters_.suspended, 1);
    std::erase_if(plan, [&](const PlannedSlice& slice) { return slice.slot == number(youngest); });
}

}  // namespace coterie::scheduler
