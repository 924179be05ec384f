// Runner's view of its slots from outside: their status, and their sequences to and from files.

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "scheduler/run/runner.h"

namespace coterie::scheduler {
namespace {

SlotState state_of(const Job& job) {
    if (!job.sequence) return job.followed ? SlotState::WaitingForPrefix : SlotState::WaitingForMemory;
    return job.answering() ? SlotState::Answering : SlotState::ReadingPrompt;
}

}  // namespace

std::vector<SlotStatus> Runner::status() const {
    std::vector<SlotStatus> all;
    for (const Slot& slot : slots_) {
        SlotStatus status{.slot = number(slot)};
        const engine::Sequence* kept = slot.kept ? kept_.get(*slot.kept) : nullptr;
        if (slot.job) {
            const Job& job = *slot.job;
            status.state = state_of(job);
            status.held_tokens = job.sequence ? job.sequence->length() : 0;
            status.prompt_tokens = job.prompt_tokens();
            status.cached_tokens = job.usage().cached_tokens;
            status.generated_tokens = job.usage().generated_tokens;
            status.max_tokens = job.request().max_tokens;
        } else if (kept) {
            status.held_tokens = kept->length();
        }
        all.push_back(status);
    }
    return all;
}

Runner::Slot& Runner::idle_slot(int wanted, const char* action) {
    if (wanted < 0 || wanted >= static_cast<int>(slots_.size())) {
        fail(ErrorCode::InvalidArgument, "slot {}: there are slots 0 to {}", wanted, slots_.size() - 1);
    }
    if (slot(wanted).job) {
        fail(ErrorCode::InvalidArgument, "slot {} is busy: {} it when its answer has ended", wanted, action);
    }
    return slot(wanted);
}

SavedSlot Runner::save(int wanted, const std::string& path) {
    const Slot& slot = idle_slot(wanted, "save");
    const engine::Sequence* kept = slot.kept ? kept_.get(*slot.kept) : nullptr;
    if (!kept) fail(ErrorCode::InvalidArgument, "slot {} holds nothing to save", wanted);
    FileSink sink(path);
    engine_.save(*kept, sink);
    sink.commit();
    return {kept->length(), std::filesystem::file_size(path)};
}

SavedSlot Runner::restore(int wanted, const std::string& path) {
    Slot& slot = idle_slot(wanted, "restore");
    std::optional<engine::Sequence> sequence;
    while (true) {
        FileSource source(path);
        sequence = engine_.restore(source);
        if (sequence || !kept_.evict()) break;
    }
    if (!sequence) {
        fail(ErrorCode::OutOfMemory, "{}: the context of {} tokens has no room for it now", path,
             engine_.context());
    }
    const std::int64_t tokens = sequence->length();
    slot.kept = kept_.park(std::move(*sequence));
    slot.last_use = ++uses_;
    publish();
    return {tokens, std::filesystem::file_size(path)};
}

std::int64_t Runner::erase(int wanted) {
    Slot& slot = idle_slot(wanted, "erase");
    const engine::Sequence* kept = slot.kept ? kept_.get(*slot.kept) : nullptr;
    const std::int64_t tokens = kept ? kept->length() : 0;
    if (slot.kept) kept_.drop(*slot.kept);
    slot.kept.reset();
    publish();
    return tokens;
}

}  // namespace coterie::scheduler
