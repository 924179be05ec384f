#include "base/thread_pool.h"

#include <algorithm>
#include <exception>

#include "base/error.h"

namespace coterie {
namespace {

// About 50 us on current processors: longer than the serial work between two regions of a step.
constexpr int kSpins = 2000;

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/// Spins, then yields: with fewer cores than workers the one we wait for may need this core.
template <typename Condition>
void spin_until(Condition done) {
    for (int spin = 0; !done(); ++spin) {
        if (spin < kSpins) {
            pause();
        } else {
            std::this_thread::yield();
        }
    }
}

}  // namespace

int available_physical_cores() { return static_cast<int>(physical_cores().size()); }

ThreadPool::ThreadPool(int threads) : size_(threads > 0 ? threads : available_physical_cores()) {
    const std::vector<int> cores = physical_cores();
    const bool one_core_each = size_ <= static_cast<int>(cores.size());
    threads_.reserve(static_cast<std::size_t>(size_ - 1));
    for (int worker = 1; worker < size_; ++worker) {
        threads_.emplace_back([this, worker] { worker_loop(worker); });
        if (one_core_each) bind_to_core(threads_.back(), cores[static_cast<std::size_t>(worker)]);
    }
    // The caller's own thread is not ours to bind, but it keeps off the workers' cores.
    if (one_core_each)
        callers_core_ = FreeCore(cores[0], std::span(cores).subspan(1, static_cast<std::size_t>(size_ - 1)));
}

ThreadPool::~ThreadPool() {
    stopping_ = true;
    region_.fetch_add(1, std::memory_order_release);
    region_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(FunctionRef<void(int)> body) {
    if (size_ == 1) {
        body(0);
        return;
    }
    callers_core_.settle();
    body_ = &body;
    running_.store(size_ - 1, std::memory_order_relaxed);
    region_.fetch_add(1, std::memory_order_release);
    region_.notify_all();
    execute(0);
    spin_until([this] { return running_.load(std::memory_order_acquire) == 0; });
    body_ = nullptr;
    if (failed_.exchange(false)) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::barrier() {
    barrier([] {});
}

void ThreadPool::barrier(FunctionRef<void()> meanwhile) {
    if (size_ == 1) return;
    const std::uint32_t generation = barriers_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) == size_ - 1) {
        arrived_.store(0, std::memory_order_relaxed);
        barriers_.fetch_add(1, std::memory_order_release);
        return;
    }
    spin_until([&] {
        if (barriers_.load(std::memory_order_acquire) != generation) return true;
        meanwhile();
        return false;
    });
}

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain,
                              FunctionRef<void(std::int64_t, std::int64_t)> body) {
    COTERIE_CHECK(grain > 0);
    if (count <= grain || size_ == 1) {
        if (count > 0) body(0, count);
        return;
    }
    TaskQueue queue;
    run([&](int) {
        for (std::int64_t begin = queue.take(grain); begin < count; begin = queue.take(grain)) {
            body(begin, std::min(begin + grain, count));
        }
    });
}

void ThreadPool::worker_loop(int worker) {
    std::uint32_t seen = 0;
    while (true) {
        for (int spin = 0; spin < kSpins && region_.load(std::memory_order_relaxed) == seen; ++spin) {
            pause();
            if (awake_.load(std::memory_order_relaxed) > 0) spin = 0;
        }
        region_.wait(seen, std::memory_order_acquire);
        ++seen;
        if (stopping_) return;
        execute(worker);
        running_.fetch_sub(1, std::memory_order_release);
    }
}

void ThreadPool::execute(int worker) {
    try {
        (*body_)(worker);
    } catch (...) {
        if (!failed_.exchange(true)) failure_ = std::current_exception();
    }
}

}  // namespace coterie
