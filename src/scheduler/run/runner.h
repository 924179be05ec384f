#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "scheduler/counters.h"
#include "scheduler/expert_usage.h"
#include "scheduler/options.h"
#include "scheduler/prefix/prefix_cache.h"
#include "scheduler/run/job.h"
#include "scheduler/run/step_watch.h"
#include "scheduler/status.h"
#include "scheduler/step/chunk_size.h"
#include "scheduler/step/step_plan.h"

namespace coterie::scheduler {

/// Runs up to so many jobs side by side, one engine step after another. No threads, no waiting: whoever owns
/// it calls `step` until nothing is left to do.
///
/// Pages. Each job may use the whole context, so jobs together may want more than there is. A job is admitted
/// where what all of them hold now, and a page more each, fits; what grows beyond takes pages of kept
/// sequences first, then those of the youngest job, which starts again from its tokens once there is room.
/// The oldest is never disturbed, so every job ends.
///
/// Prefixes. A job begins with a copy of the longest kept or running sequence that its prompt begins with. If
/// a running one is still reading what both share, the job waits for it.
///
/// Drafts. Behind an answer's last token a step computes what may follow; what the logits then contradict is
/// taken back. The text is that of a run without drafts, for any sampler: each token is drawn from the same
/// logits.
class Runner {
  public:
    Runner(engine::Engine& engine, const SchedulerOptions& options, Counters& counters, ExpertUsage& usage);

    /// Whether a job could be admitted now.
    bool has_room(const Job& job) const;
    /// Requires has_room(*job).
    void admit(std::unique_ptr<Job> job);

    /// Ends jobs whose readers left or whose time is over, and computes one step. False where there was
    /// nothing to compute.
    bool step();

    bool idle() const { return running() == 0; }
    std::int64_t running() const;
    void finish_all(FinishReason reason);
    /// The earliest time limit of a running job.
    std::optional<SteadyTime> next_deadline() const;

    std::vector<SlotStatus> status() const;
    /// What a slot's last job left, to and from a file; how many tokens. Throw InvalidArgument where the slot
    /// is busy or empty, and what files throw.
    SavedSlot save(int slot, const std::string& path);
    SavedSlot restore(int slot, const std::string& path);
    std::int64_t erase(int slot);

  private:
    struct Slot {
        std::unique_ptr<Job> job;
        std::optional<PrefixCache::Id> kept;  ///< what its last job left
        std::uint64_t last_use = 0;
    };

    Slot& slot_for(const Job& job);
    Slot& idle_slot(int slot, const char* action);
    std::int64_t demand(const Job& job) const;
    std::int64_t demand_of_running() const;
    void end_overdue(SteadyTime now);
    void find_sequences(SteadyTime now);
    void find_sequence(Slot& slot, SteadyTime now);
    std::optional<Followed> donor_of(const Job& job, std::int64_t limit, const Job*& best,
                                     std::int64_t& now_length) const;
    bool still_follows(const Job& job) const;
    std::vector<Slot*> by_age();
    std::vector<Work> collect_work();
    std::int64_t draft(Job& job, std::int64_t answers, speculative::StepBudget& budget) const;
    void drop_drafts(std::vector<PlannedSlice>& plan);
    void make_room(std::vector<PlannedSlice>& plan);
    std::int64_t pages_wanted(const std::vector<PlannedSlice>& plan) const;
    void suspend_youngest(std::vector<PlannedSlice>& plan);
    void compute(const std::vector<PlannedSlice>& plan);
    void run_step();
    void draw(Job& job, std::span<const float> logits);
    void fail_job(Job& job, const Error& error);
    void after_step(double seconds);
    void settle_slice(const RunningSlice& slice, SteadyTime now);
    void plan_snapshots(Job& job) const;
    void retire(Slot& slot, FinishReason reason, SteadyTime now);
    void release(Slot& slot);
    void publish();
    /// Whether a job only lacks what its last step brought or took back, and not a prompt.
    bool writes_on(const Job& job) const { return job.answering() && job.lacking() <= most_redone_ + 1; }
    int number(const Slot& slot) const { return static_cast<int>(&slot - slots_.data()); }
    Slot& slot(int number) { return slots_[static_cast<std::size_t>(number)]; }

    engine::Engine& engine_;
    Counters& counters_;
    speculative::SpeculativeOptions drafts_;
    speculative::StepCosts costs_;  ///< of steps with answers alone
    std::int64_t most_redone_ = 0;  ///< tokens that recurrent layers read again after a wrong draft
    std::vector<Slot> slots_;
    PrefixCache kept_;
    PrefixTree running_;  ///< prompts of jobs that have a sequence, by number
    ChunkSize chunk_;
    StepWatch watch_;
    std::uint64_t uses_ = 0;
    std::uint64_t steps_ = 0;

    // Of the step that runs.
    std::vector<engine::Slice> slices_;
    std::vector<RunningSlice> parts_;
    std::vector<std::pair<Job*, FinishReason>> done_;
};

}  // namespace coterie::scheduler
