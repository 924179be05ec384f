#include "expert_cache/uploads/uploader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace coterie::expert_cache {
namespace {

std::uint64_t size_of(const HostExpert& expert) {
    std::uint64_t bytes = 0;
    for (const auto& piece : expert.pieces) bytes += piece.size();
    return bytes;
}

/// What stands at `offset` of the pieces' concatenation, up to the end of its piece.
std::span<const std::byte> stretch_at(const HostExpert& expert, std::uint64_t offset) {
    for (const auto& piece : expert.pieces) {
        if (offset < piece.size()) return piece.subspan(offset);
        offset -= piece.size();
    }
    return {};
}

/// Copies bytes [offset, offset + to.size()) of the concatenation.
void gather(const HostExpert& expert, std::uint64_t offset, std::span<std::byte> to) {
    while (!to.empty()) {
        const auto from = stretch_at(expert, offset);
        const std::size_t bytes = std::min(from.size(), to.size());
        std::memcpy(to.data(), from.data(), bytes);
        to = to.subspan(bytes);
        offset += bytes;
    }
}

}  // namespace

Uploader::Uploader(Device& device, const Clock& clock, const CpuReading& reading,
                   const UploadOptions& options)
    : clock_(clock),
      reading_(reading),
      options_(options),
      stream_(device.create_stream()),
      chunks_(static_cast<std::size_t>(options.chunks_in_flight)),
      records_(static_cast<std::size_t>(options.queue_length)) {
    COTERIE_CHECK(options.chunk_bytes > 0 && options.chunks_in_flight > 0 && options.queue_length > 0);
    for (Chunk& chunk : chunks_) {
        chunk.staging = device.allocate_pinned(options.chunk_bytes);
        chunk.begun = device.create_event();
        chunk.arrived = device.create_event();
    }
}

Uploader::~Uploader() {
    // Chunks under way read the staging buffers and write slots, which go after this.
    const Nanoseconds deadline = clock_.now() + options_.watchdog;
    for (const Chunk& chunk : chunks_) {
        if (chunk.under_way) chunk.arrived->wait(std::max(deadline - clock_.now(), Nanoseconds(0)));
    }
}

bool Uploader::submit(const Upload& upload) {
    const std::lock_guard lock(submit_mutex_);
    const std::uint64_t number = tail_.load();
    if (number - first_.load() == records_.size()) return false;
    record(number) = {.upload = upload, .bytes = size_of(upload.from)};
    tail_.store(number + 1);
    return true;
}

std::int32_t Uploader::room() const {
    return static_cast<std::int32_t>(records_.size() - (tail_.load() - first_.load()));
}

void Uploader::grant(std::int32_t tokens) {
    if (options_.bytes_per_token == UploadOptions::kNoBudget) return;
    const std::lock_guard lock(submit_mutex_);
    const auto per_token = static_cast<std::int64_t>(options_.bytes_per_token);
    const std::int64_t saved = budget_.load();
    const std::int64_t most = static_cast<std::int64_t>(options_.budget_tokens) * per_token;
    budget_.fetch_add(std::min(tokens * per_token, std::max<std::int64_t>(most - saved, 0)));
}

void Uploader::cancel_all() { cancel_below_.store(tail_.load()); }

bool Uploader::pump(const Event& ready, FunctionRef<void(const UploadResult&)> ended) {
    collect();
    recover();
    while (may_send()) {
        Record& next = record(sending_);
        Chunk* chunk = over(sending_) ? nullptr : free_chunk();
        if (!over(sending_) && !chunk) break;
        if (chunk) send(next, *chunk, ready);
        if (over(sending_)) ++sending_;
    }
    finish(ended);
    const bool under_way = recovering_ || std::any_of(chunks_.begin(), chunks_.end(),
                                                      [](const Chunk& c) { return c.under_way; });
    return !stuck_.load() && (under_way || (sending_ != tail_.load() && has_budget()));
}

/// Whether no more of an upload is to be sent.
bool Uploader::over(std::uint64_t number) {
    const Record& of = record(number);
    return of.failed || of.sent == of.bytes || cancelled(number);
}

/// Takes back chunks that have arrived or failed.
void Uploader::collect() {
    for (Chunk& chunk : chunks_) {
        if (!chunk.under_way) continue;
        const EventState state = chunk.arrived->state();
        if (state == EventState::Pending) {
            if (clock_.now() - chunk.started > options_.watchdog) stuck_.store(true);
            continue;
        }
        Record& of = record(chunk.upload);
        chunk.under_way = false;
        --of.chunks;
        if (state == EventState::Failed) of.failed = recovering_ = true;
        if (state == EventState::Reached) add_time(chunk);
    }
}

/// A copy during which the CPU began or ceased to read says nothing of either rate.
void Uploader::add_time(const Chunk& chunk) {
    if ((chunk.ram == RamUse::Contended) != reading_.active()) return;
    const auto time = chunk.arrived->since(*chunk.begun);
    if (!time || *time <= Nanoseconds(0)) return;
    const std::lock_guard lock(times_mutex_);
    CopyTimes& times = chunk.ram == RamUse::Contended ? contended_ : alone_;
    ++times.copies;
    times.bytes += chunk.bytes;
    times.seconds += std::chrono::duration<double>(*time).count();
}

CopyTimes Uploader::take_times(RamUse ram) {
    const std::lock_guard lock(times_mutex_);
    return std::exchange(ram == RamUse::Contended ? contended_ : alone_, {});
}

/// Clears a failed stream once nothing of it is under way.
void Uploader::recover() {
    if (!recovering_) return;
    if (std::any_of(chunks_.begin(), chunks_.end(), [](const Chunk& chunk) { return chunk.under_way; }))
        return;
    try {
        stream_->synchronise();
    } catch (const Error&) {  // what the failed chunks have already said
    }
    recovering_ = false;
}

void Uploader::finish(FunctionRef<void(const UploadResult&)> ended) {
    for (std::uint64_t number = first_.load(); number < sending_; ++number) {
        const Record& of = record(number);
        if (of.chunks > 0 || (of.failed && recovering_)) return;
        const UploadOutcome outcome = of.failed             ? UploadOutcome::Failed
                                      : of.sent == of.bytes ? UploadOutcome::Done
                                                            : UploadOutcome::Cancelled;
        const UploadResult result{.key = of.upload.key, .slot = of.upload.slot, .outcome = outcome};
        first_.store(number + 1);
        ended(result);
    }
}

bool Uploader::may_send() {
    if (recovering_ || stuck_.load() || sending_ == tail_.load()) return false;
    return over(sending_) || (has_budget() && !yields());
}

bool Uploader::has_budget() const {
    return options_.bytes_per_token == UploadOptions::kNoBudget || budget_ignored_.load() ||
           budget_.load() > 0;
}

/// Whether the CPU reads and has not done so for so long that a chunk goes anyway.
bool Uploader::yields() {
    if (!reading_.active()) {
        yielding_since_ = Nanoseconds(-1);
        return false;
    }
    const Nanoseconds now = clock_.now();
    if (yielding_since_ < Nanoseconds(0)) yielding_since_ = now;
    if (now - yielding_since_ < options_.longest_yield) return true;
    yielding_since_ = now;
    return false;
}

void Uploader::send(Record& of, Chunk& chunk, const Event& ready) {
    try {
        if (of.sent == 0) stream_->wait_for(ready);
        chunk.ram = reading_.active() ? RamUse::Contended : RamUse::Alone;
        stream_->record(*chunk.begun);
        const std::uint64_t bytes = chunk.bytes = copy_chunk(of, chunk);
        stream_->record(*chunk.arrived);
        of.sent += bytes;
        chunk.upload = sending_;
        chunk.started = clock_.now();
        chunk.under_way = true;
        ++of.chunks;
        if (!budget_ignored_.load()) budget_.fetch_sub(static_cast<std::int64_t>(bytes));
    } catch (const Error&) {  // an upload's failure is its result; the expert stays with the CPU
        of.failed = recovering_ = true;
    }
}

/// Queues the next bytes of an upload; returns how many.
std::uint64_t Uploader::copy_chunk(const Record& of, Chunk& chunk) {
    const DeviceAddress to = of.upload.to + of.sent;
    if (of.upload.from.memory == HostMemory::Pinned) {
        const auto piece = stretch_at(of.upload.from, of.sent);
        const auto part = piece.first(std::min<std::size_t>(piece.size(), options_.chunk_bytes));
        stream_->copy_to_device(to, part);
        return part.size();
    }
    const std::uint64_t bytes = std::min(of.bytes - of.sent, options_.chunk_bytes);
    const auto staging = chunk.staging->span().first(bytes);
    gather(of.upload.from, of.sent, staging);
    stream_->copy_to_device(to, staging);
    return bytes;
}

Uploader::Chunk* Uploader::free_chunk() {
    const auto found =
        std::find_if(chunks_.begin(), chunks_.end(), [](const Chunk& c) { return !c.under_way; });
    return found == chunks_.end() ? nullptr : &*found;
}

}  // namespace coterie::expert_cache
