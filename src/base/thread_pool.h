#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "base/cores.h"
#include "base/function_ref.h"

namespace coterie {

/// A team of threads that computes one parallel region after another.
///
/// The caller is worker 0. The others spin between regions for about 50 us, because the next region of a
/// decode step follows within microseconds, and then sleep on a futex, so that an idle program costs nothing.
/// Each worker is bound to a physical core of its own where the process may use that many, and the caller
/// keeps off those.
///
/// One region runs at a time, started by one thread. Nothing allocates after construction.
class ThreadPool {
  public:
    /// `threads` >= 1 counts the caller; 0 means one per physical core this process may use.
    explicit ThreadPool(int threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int size() const { return size_; }

    /// Runs `body(worker)` once on every worker, 0 <= worker < size(), and returns when all have returned.
    /// The first exception is rethrown here; a body that calls `barrier` must not throw.
    void run(FunctionRef<void(int)> body);

    /// Inside a region: waits until every worker is here. Writes before it are visible after it.
    void barrier();
    /// The same; who waits calls `meanwhile` again and again: work of nanoseconds that may be left undone.
    void barrier(FunctionRef<void()> meanwhile);

    /// While one lives, workers spin between regions however long it takes: for who waits for an unknown time
    /// and then needs them within a microsecond.
    class Awake {
      public:
        explicit Awake(ThreadPool& pool) : pool_(pool) {
            pool_.callers_core_.settle();
            pool_.awake_.fetch_add(1, std::memory_order_relaxed);
        }
        ~Awake() { pool_.awake_.fetch_sub(1, std::memory_order_relaxed); }
        Awake(const Awake&) = delete;
        Awake& operator=(const Awake&) = delete;

      private:
        ThreadPool& pool_;
    };

    /// Cuts [0, count) into pieces of `grain`, taken by the workers as they become free; a lone worker gets
    /// one piece.
    void parallel_for(std::int64_t count, std::int64_t grain,
                      FunctionRef<void(std::int64_t begin, std::int64_t end)> body);

  private:
    void worker_loop(int worker);
    void execute(int worker);

    const int size_;
    std::vector<std::thread> threads_;
    FreeCore callers_core_;
    const FunctionRef<void(int)>* body_ = nullptr;
    std::exception_ptr failure_;
    std::atomic<bool> failed_{false};

    // Each on its own cache line: they are written by different threads at different times.
    alignas(64) std::atomic<std::uint32_t> region_{0};  ///< counts regions; a change wakes the workers
    alignas(64) std::atomic<int> running_{0};           ///< workers that have not left the region yet
    alignas(64) std::atomic<int> arrived_{0};           ///< workers waiting at the current barrier
    alignas(64) std::atomic<std::uint32_t> barriers_{0};
    std::atomic<int> awake_{0};
    bool stopping_ = false;  ///< written before region_ changes, read after
};

/// Hands out pieces of [0, count) to the workers of one region. Reset before the region that uses it, or
/// between two barriers of it.
class TaskQueue {
  public:
    void reset() { next_.store(0, std::memory_order_relaxed); }

    /// The first index of the next piece of `grain`; at or past the count when nothing is left.
    std::int64_t take(std::int64_t grain) { return next_.fetch_add(grain, std::memory_order_relaxed); }

  private:
    alignas(64) std::atomic<std::int64_t> next_{0};
};

/// The number of physical cores this process may run on, at least 1.
int available_physical_cores();

}  // namespace coterie
