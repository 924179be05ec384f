#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/function_ref.h"
#include "devices/device.h"
#include "expert_cache/cache_options.h"
#include "expert_cache/costs/ram_use.h"
#include "expert_cache/expert_key.h"
#include "expert_cache/uploads/cpu_reading.h"
#include "expert_cache/uploads/host_expert.h"

namespace coterie::expert_cache {

struct Upload {
    ExpertKey key{};
    std::int32_t slot = 0;
    DeviceAddress to{};
    HostExpert from{};
};

enum class UploadOutcome { Done, Failed, Cancelled };

struct UploadResult {
    ExpertKey key;
    std::int32_t slot;
    UploadOutcome outcome;
};

/// Copies whose time the device has told.
struct CopyTimes {
    std::uint64_t copies = 0;
    std::uint64_t bytes = 0;
    double seconds = 0;  ///< of all of them, one after the other
};

/// Copies experts from RAM to one device, one after the other, in chunks.
///
/// Uploads are sent in the order of their submission and end in it. A chunk starts when the budget is
/// positive, a staging buffer is free and the CPU is not reading RAM (or has been for too long). Bytes that
/// are not pinned pass through the staging buffers. An upload ends when all its chunks have arrived, or when
/// it is cancelled or has failed and none of them is under way any more: then nothing writes its slot. A copy
/// that outlasts the watchdog may write it for ever: the device counts as lost.
///
/// A state machine without a thread: `pump` moves it on and never blocks. `submit`, `grant` and `cancel_all`
/// may be called from any thread, `pump` from one at a time. Nothing allocates after construction.
class Uploader {
  public:
    Uploader(Device& device, const Clock& clock, const CpuReading& reading, const UploadOptions& options);
    ~Uploader();

    /// False where the queue is full.
    [[nodiscard]] bool submit(const Upload& upload);
    std::int32_t room() const;
    /// A token has passed.
    void grant(std::int32_t tokens);
    /// While a cache is loaded nothing else needs the link.
    void ignore_budget(bool ignore) { budget_ignored_.store(ignore); }
    void cancel_all();

    /// Uploads that start now write after `ready` is reached. Hands over what has ended. Whether there is
    /// more to do before the next grant or submission.
    bool pump(const Event& ready, FunctionRef<void(const UploadResult&)> ended);
    /// The copies that ended since the last call, apart where the CPU read RAM beside them. Empty where the
    /// device does not time its events.
    CopyTimes take_times(RamUse ram);
    /// Nothing waits or is under way. For the thread that pumps.
    bool idle() const { return !recovering_ && first_.load() == tail_.load(); }
    /// Whether a copy has outlasted the watchdog.
    bool stuck() const { return stuck_.load(); }

  private:
    struct Chunk {
        std::unique_ptr<PinnedMemory> staging;
        std::unique_ptr<Event> begun;
        std::unique_ptr<Event> arrived;
        std::uint64_t upload = 0;  ///< its number
        std::uint64_t bytes = 0;
        RamUse ram = RamUse::Alone;  ///< when it was sent
        Nanoseconds started{0};
        bool under_way = false;
    };
    struct Record {
        Upload upload;
        std::uint64_t bytes = 0;
        std::uint64_t sent = 0;
        std::int32_t chunks = 0;  ///< under way
        bool failed = false;
    };
    Record& record(std::uint64_t number) { return records_[number % records_.size()]; }
    bool cancelled(std::uint64_t number) const { return number < cancel_below_.load(); }
    bool over(std::uint64_t number);
    void collect();
    void add_time(const Chunk& chunk);
    void recover();
    void finish(FunctionRef<void(const UploadResult&)> ended);
    bool may_send();
    bool yields();
    bool has_budget() const;
    void send(Record& record, Chunk& chunk, const Event& ready);
    std::uint64_t copy_chunk(const Record& record, Chunk& chunk);
    Chunk* free_chunk();

    const Clock& clock_;
    const CpuReading& reading_;
    const UploadOptions options_;
    std::unique_ptr<Stream> stream_;
    std::vector<Chunk> chunks_;
    bool recovering_ = false;  ///< the stream has failed; nothing is sent until all of it has come back
    Nanoseconds yielding_since_{-1};

    // Uploads are numbered: those below first_ have ended, those below sending_ are sent, those below tail_
    // are submitted. A record is written before tail_ passes it; from then on only `pump` touches it.
    std::vector<Record> records_;  ///< a ring
    std::atomic<std::uint64_t> first_{0};
    std::uint64_t sending_ = 0;
    std::atomic<std::uint64_t> tail_{0};
    std::atomic<std::uint64_t> cancel_below_{0};
    std::mutex submit_mutex_;
    std::atomic<std::int64_t> budget_{0};
    std::atomic<bool> budget_ignored_{false};
    std::atomic<bool> stuck_{false};
    std::mutex times_mutex_;
    CopyTimes alone_;
    CopyTimes contended_;
};

}  // namespace coterie::expert_cache
