#include "scheduler/run/runner.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace coterie::scheduler {
namespace {

std::uint64_t microseconds(double seconds) { return static_cast<std::uint64_t>(seconds * 1e6); }

}  // namespace

Runner::Runner(engine::Engine& engine, const SchedulerOptions& options, Counters& counters,
               ExpertUsage& usage)
    : engine_(engine),
      counters_(counters),
      drafts_(options.drafts),
      slots_(static_cast<std::size_t>(options.slots)),
      kept_(options.kept_sequences),
      chunk_(options.longest_step, engine.batch()),
      watch_(engine, usage) {
    const bool drafts = drafts_.source != speculative::DraftSource::None;
    if (drafts && engine.recurrent_bytes() > 0) most_redone_ = drafts_.most_tokens;
}

std::int64_t Runner::running() const {
    return std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.job != nullptr; });
}

bool Runner::has_room(const Job& job) const {
    const auto free = [&](const Slot& slot) { return slot.job == nullptr; };
    if (const std::optional<int> wanted = job.request().slot)
        return free(slots_[static_cast<std::size_t>(*wanted)]);
    return std::any_of(slots_.begin(), slots_.end(), free);
}

/// The one asked for; else a free one, the longest unused first.
Runner::Slot& Runner::slot_for(const Job& job) {
    if (job.request().slot) return slot(*job.request().slot);
    Slot* best = nullptr;
    for (Slot& candidate : slots_) {
        if (candidate.job) continue;
        if (!best || candidate.last_use < best->last_use) best = &candidate;
    }
    return *best;
}

void Runner::admit(std::unique_ptr<Job> job) {
    COTERIE_CHECK(has_room(*job));
    Slot& slot = slot_for(*job);
    slot.last_use = ++uses_;
    slot.job = std::move(job);
    if (!slot.job->is_embedding()) {
        slot.job->speculate(speculative::make_speculator(drafts_, engine_.context()));
    }
    publish();
}

bool Runner::step() {
    const SteadyTime now = std::chrono::steady_clock::now();
    end_overdue(now);
    find_sequences(now);
    const std::vector<Work> work = collect_work();
    if (work.empty()) return false;
    std::vector<PlannedSlice> plan =
        plan_step(work,
                  {.batch = engine_.device() != nullptr ? engine_.window() : engine_.batch(),
                   .prompt_chunk = chunk_.tokens(),
                   .grid = engine_.prompt_grid()},
                  steps_++);
    make_room(plan);
    if (!plan.empty()) compute(plan);
    return true;
}

void Runner::end_overdue(SteadyTime now) {
    for (Slot& slot : slots_) {
        if (!slot.job) continue;
        if (const auto reason = slot.job->overdue(now)) retire(slot, *reason, now);
    }
}

void Runner::finish_all(FinishReason reason) {
    const SteadyTime now = std::chrono::steady_clock::now();
    for (Slot& slot : slots_) {
        if (slot.job) retire(slot, reason, now);
    }
}

std::optional<SteadyTime> Runner::next_deadline() const {
    std::optional<SteadyTime> next;
    for (const Slot& slot : slots_) {
        const auto deadline = slot.job ? slot.job->deadline() : std::nullopt;
        if (deadline && (!next || *deadline < *next)) next = deadline;
    }
    return next;
}

std::vector<Runner::Slot*> Runner::by_age() {
    std::vector<Slot*> busy;
    for (Slot& slot : slots_) {
        if (slot.job) busy.push_back(&slot);
    }
    std::sort(busy.begin(), busy.end(),
              [](const Slot* a, const Slot* b) { return a->job->number() < b->job->number(); });
    return busy;
}

/// Oldest first, so that a younger job finds what an older one has.
void Runner::find_sequences(SteadyTime now) {
    for (Slot* slot : by_age()) {
        Job& job = *slot->job;
        if (job.sequence || still_follows(job)) continue;
        const std::int64_t held = demand_of_running();
        if (held > 0 && held + demand(job) > engine_.pages()) return;  // those behind wait for their turn
        find_sequence(*slot, now);
    }
}

bool Runner::still_follows(const Job& job) const {
    if (!job.followed) return false;
    for (const Slot& slot : slots_) {
        if (!slot.job || slot.job->number() != job.followed->job) continue;
        return slot.job->sequence && slot.job->sequence->length() < job.followed->length;
    }
    return false;
}

/// The running job that has the most of this one's tokens, or will have them soon.
std::optional<Followed> Runner::donor_of(const Job& job, std::int64_t limit, const Job*& best,
                                         std::int64_t& length) const {
    std::optional<Followed> soon;
    for (const PrefixTree::Match& match : running_.matches(job.tokens())) {
        const auto slot = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& other) {
            return other.job && other.job->number() == match.id;
        });
        const Job& other = *slot->job;
        const std::int64_t shared = std::min(match.length, limit);
        const std::int64_t has = other.sequence->restorable(std::min(shared, other.sequence->length()));
        if (has > length) {
            best = &other;
            length = has;
        }
        const bool will_have = other.number() < job.number() && other.sequence->length() < shared;
        if (will_have && (!soon || shared > soon->length)) soon = Followed{other.number(), shared};
    }
    return soon;
}

void Runner::find_sequence(Slot& slot, SteadyTime now) {
    Job& job = *slot.job;
    job.followed.reset();
    job.shared_tokens = 0;
    const bool reuses = job.request().reuse_prefix && !job.is_embedding();
    const auto limit = reuses ? static_cast<std::int64_t>(job.tokens().size()) - 1 : 0;
    const auto found = kept_.find(job.tokens(), limit);
    const Job* donor = nullptr;
    std::int64_t length = found ? found->length : 0;
    const auto soon = reuses ? donor_of(job, limit, donor, length) : std::nullopt;
    if (soon && soon->length >= length + kPageTokens) {  // less is read sooner than waited for
        job.followed = soon;
        for (Slot& other : slots_) {
            if (other.job && other.job->number() == soon->job)
                other.job->snapshots_wanted.push_back(soon->length);
        }
        return;
    }
    if (donor) {
        job.sequence = donor->sequence->fork();
        job.sequence->truncate(length);
        job.shared_tokens = length;
    } else if (found) {
        job.sequence = kept_.take(*found);
    } else {
        job.sequence = engine_.make_sequence();
    }
    running_.insert(job.number(), job.request().prompt);
    plan_snapshots(job);
    const std::int64_t cached = std::min(job.sequence->length(), job.prompt_tokens());
    if (!job.answering()) Counters::add(counters_.cached_tokens, static_cast<std::uint64_t>(cached));
    job.start(number(slot), cached, now);
}

/// Where a model with recurrent layers should be able to come back to: on the way through a long prompt, and
/// shortly before its end, behind which the next turn's prompt often differs.
void Runner::plan_snapshots(Job& job) const {
    constexpr std::int64_t kEvery = 512;
    constexpr std::int64_t kBeforeEnd = 16;
    if (engine_.recurrent_bytes() == 0 || job.is_embedding()) return;
    for (std::int64_t at = kEvery; at < job.prompt_tokens(); at += kEvery) job.snapshots_wanted.push_back(at);
    job.snapshots_wanted.push_back(job.prompt_tokens() - kBeforeEnd);
    job.snapshots_wanted.push_back(job.prompt_tokens());
}

std::vector<Work> Runner::collect_work() {
    std::vector<Work> work;
    const std::vector<Slot*> slots = by_age();
    const std::int64_t answers = std::count_if(slots.begin(), slots.end(), [&](const Slot* slot) {
        return slot->job->sequence && writes_on(*slot->job);
    });
    speculative::StepBudget budget(costs_, answers);
    for (Slot* slot : slots) {
        Job& job = *slot->job;
        if (!job.sequence || job.events()->full()) continue;
        std::int64_t tokens = job.lacking();
        const std::int64_t length = job.sequence->length();
        if (engine_.recurrent_bytes() > 0) {  // a snapshot can only be taken between two steps
            for (const std::int64_t at : job.snapshots_wanted) {
                if (at > length) tokens = std::min(tokens, at - length);
            }
        }
        const bool writes = writes_on(job);
        if (writes && tokens == job.lacking()) tokens += draft(job, answers, budget);
        work.push_back({number(*slot), tokens, writes, length});
    }
    return work;
}

/// Answers share a step's room, so that none waits for another's draft; and a step of a GPU that holds a
/// whole cell of the grid would compute it as a prompt's.
std::int64_t Runner::draft(Job& job, std::int64_t answers, speculative::StepBudget& budget) const {
    const std::int64_t room = std::min(engine_.batch() / answers, kPageTokens - 1) - job.lacking();
    return room > 0 ? job.draft(std::min(room, drafts_.most_tokens), budget) : 0;
}

void Runner::compute(const std::vector<PlannedSlice>& plan) {
    slices_.clear();
    parts_.clear();
    done_.clear();
    std::int64_t first = 0;
    for (const PlannedSlice& planned : plan) {
        Job& job = *slot(planned.slot).job;
        parts_.push_back({&job, first, planned.tokens, !writes_on(job)});
        const std::span<const TokenId> tokens = job.begin_step(planned.tokens);
        using Logits = engine::Slice::Logits;
        const Logits last = job.draws(planned.tokens - 1) ? Logits::Last : Logits::None;
        slices_.push_back({&*job.sequence, tokens, job.drafted() > 0 ? Logits::All : last});
        first += planned.tokens;
    }
    watch_.begin(parts_);
    try {
        const SteadyTime start = std::chrono::steady_clock::now();
        run_step();
        after_step(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    } catch (const Error& error) {
        if (error.code() == ErrorCode::Cancelled) return;  // its readers left: the next step ends the jobs
        for (const RunningSlice& part : parts_) fail_job(*part.job, error);
    }
    const SteadyTime now = std::chrono::steady_clock::now();
    for (const auto& [job, reason] : done_) {
        if (job->over()) continue;
        Counters::add(counters_.finished, 1);  // before its reader can know
        job->finish(reason, now);
    }
    for (Slot& slot : slots_) {
        if (slot.job && slot.job->over()) release(slot);
    }
}

void Runner::fail_job(Job& job, const Error& error) {
    if (job.over()) return;
    Counters::add(counters_.failed, 1);
    job.fail(error.code(), error.what());
}

void Runner::run_step() {
    auto part = parts_.begin();
    const auto take = [&](std::int64_t row, std::span<const float> logits) {
        while (row >= part->first + part->tokens) ++part;
        if (part->job->draws(row - part->first)) draw(*part->job, logits);
    };
    engine_.step(slices_, take, &watch_);
}

void Runner::draw(Job& job, std::span<const float> logits) {
    const SteadyTime start = std::chrono::steady_clock::now();
    try {
        if (const auto reason = job.draw(logits, start)) done_.emplace_back(&job, *reason);
    } catch (const Error& error) {  // ends this answer; its neighbours go on
        fail_job(job, error);
    }
    const SteadyTime end = std::chrono::steady_clock::now();
    Counters::add(counters_.draw_us, microseconds(std::chrono::duration<double>(end - start).count()));
    Counters::add(counters_.generated_tokens, 1);
}

void Runner::after_step(double seconds) {
    const SteadyTime now = std::chrono::steady_clock::now();
    std::int64_t prompt_tokens = 0;
    std::int64_t tokens = 0;
    for (const RunningSlice& part : parts_) {
        if (part.of_prompt) prompt_tokens += part.tokens;
        tokens += part.tokens;
        settle_slice(part, now);
    }
    chunk_.observe(prompt_tokens, seconds);
    if (prompt_tokens == 0) costs_.observe(tokens, seconds);
    Counters::add(counters_.steps, 1);
    Counters::add(prompt_tokens > 0 ? counters_.prompt_step_us : counters_.answer_step_us,
                  microseconds(seconds));
    Counters::add(counters_.prompt_tokens, static_cast<std::uint64_t>(prompt_tokens));
    publish();
}

void Runner::settle_slice(const RunningSlice& part, SteadyTime now) {
    Job& job = *part.job;
    Counters::add(counters_.drafted_tokens, static_cast<std::uint64_t>(job.drafted()));
    Counters::add(counters_.accepted_tokens, static_cast<std::uint64_t>(job.end_step()));
    std::vector<std::int64_t>& wanted = job.snapshots_wanted;
    const std::int64_t length = job.sequence->length();
    if (std::find(wanted.begin(), wanted.end(), length) != wanted.end()) job.sequence->snapshot();
    std::erase_if(wanted, [&](std::int64_t at) { return at <= length; });
    if (job.is_embedding() && job.lacking() == 0) {
        done_.emplace_back(&job, FinishReason::EndToken);
    } else {
        job.report_progress(now);
    }
}

void Runner::retire(Slot& slot, FinishReason reason, SteadyTime now) {
    slot.job->finish(reason, now);
    if (reason == FinishReason::Cancelled) Counters::add(counters_.cancelled, 1);
    if (reason == FinishReason::TimeLimit) Counters::add(counters_.timed_out, 1);
    release(slot);
}

/// Keeps the job's sequence for prompts to come.
void Runner::release(Slot& slot) {
    Job& job = *slot.job;
    running_.remove(job.number());
    if (job.sequence && !job.is_embedding() && job.request().reuse_prefix) {
        job.sequence->snapshot();
        slot.kept = kept_.park(std::move(*job.sequence));
    }
    slot.job.reset();
    publish();
}

void Runner::publish() {
    counters_.running.store(running(), std::memory_order_relaxed);
    counters_.pages_used.store(engine_.pages() - engine_.free_pages(), std::memory_order_relaxed);
    counters_.kept_sequences.store(static_cast<std::int64_t>(kept_.size()), std::memory_order_relaxed);
    counters_.evicted_sequences.store(kept_.evictions(), std::memory_order_relaxed);
}

}  // namespace coterie::scheduler
