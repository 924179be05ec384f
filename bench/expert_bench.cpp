// One expert of one token at a time, its weights in no cache: what a missed expert costs the CPU. For each
// number of threads: microseconds an expert (median, and the fastest tenth, which other work on the machine
// disturbs less), GB/s of its weights by the median and their share of what plain reading gives in the same
// run; and what a parallel region with a barrier costs that does nothing.
// Usage: expert_bench [THREADS...]

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <vector>

#include "base/split_mix.h"
#include "base/thread_pool.h"
#include "engine/forward/expert_pass.h"
#include "engine/probe/probe_experts.h"
#include "kernels/cpu/memory_bandwidth.h"

namespace coterie::engine {
namespace {

constexpr int kRounds = 201;

struct Times {
    double median;
    double fast;  ///< the fastest tenth
};

template <typename Work>
Times times_of(Work work) {
    std::vector<double> seconds;
    for (int round = 0; round < kRounds; ++round) {
        const auto start = std::chrono::steady_clock::now();
        work();
        seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::sort(seconds.begin(), seconds.end());
    return {seconds[kRounds / 2], seconds[kRounds / 10]};
}

/// One token's row as experts read it.
class Token {
  public:
    explicit Token(std::int64_t columns)
        : values_(static_cast<std::size_t>(stored_groups(columns) * kGroupValues)),
          quantised_(stored_groups(columns)) {
        SplitMix64 random(1);
        for (float& value : values_.span()) value = random.next_float() - 0.5f;
        cpu::kernels().quantise_activation(values_.data(), columns, quantised_.target(0));
        row_ = quantised_.view(0, columns, values_.data());
    }
    std::span<const ActivationRow> row() const { return {&row_, 1}; }

  private:
    AlignedBuffer<float> values_;
    ActivationStore quantised_;
    ActivationRow row_;
};

/// Seconds for `used` experts of one token, other ones each time.
Times times_of(ThreadPool& pool, const ProbeExperts& experts, const ExpertShape& shape, std::int64_t used) {
    ExpertPass pass(pool, {.max_tokens = 1,
                           .max_assignments = used,
                           .hidden_groups = used * stored_groups(shape.hidden),
                           .keep_values = false});
    const Token token(shape.width);
    std::vector<float> outputs(static_cast<std::size_t>(used * shape.width));
    ExpertPlan plan;
    plan.tokens.assign(static_cast<std::size_t>(used), 0);
    plan.jobs.reserve(static_cast<std::size_t>(used));
    std::int64_t next = 0;
    return times_of([&] {
        plan.jobs.clear();
        for (std::int64_t i = 0; i < used; ++i, ++next) {
            const std::int64_t e = next % experts.count();
            plan.jobs.push_back({static_cast<std::int32_t>(e), expert_tensor(experts.gate(), e),
                                 expert_tensor(experts.up(), e), expert_tensor(experts.down(), e),
                                 shape.activation, i, 1});
        }
        pass.compute(cpu::kernels(), plan, plan.jobs, token.row(), outputs.data(), shape.width);
    });
}

void print_row(int threads, const ExpertShape& shape) {
    ThreadPool pool(threads);
    const ProbeExperts experts(pool, shape);
    const ThreadPool::Awake awake(pool);
    const double reading = cpu::measure_read_rate(pool);
    const Times region = times_of([&] { pool.run([&](int) { pool.barrier(); }); });
    const auto bytes =
        static_cast<double>(experts.gate().bytes_per_expert() + experts.up().bytes_per_expert() +
                            experts.down().bytes_per_expert());
    std::printf("%7d | %12.1f | %9.1f |", threads, reading / 1e9, region.median * 1e6);
    for (const std::int64_t used : {1, 2, 4, 8}) {
        const Times times = times_of(pool, experts, shape, used);
        const double each = 1e6 / static_cast<double>(used);
        const double rate = bytes * static_cast<double>(used) / times.median;
        std::printf(" %6.1f (%6.1f) us %6.1f GB/s %3.0f %% |", times.median * each, times.fast * each,
                    rate / 1e9, 100.0 * rate / reading);
    }
    std::printf("\n");
    std::fflush(stdout);
}

}  // namespace
}  // namespace coterie::engine

int main(int argc, char** argv) {
    using namespace coterie;
    std::vector<int> counts;
    for (const std::string_view text : std::vector<std::string_view>(argv + 1, argv + argc)) {
        int threads = 0;
        std::from_chars(text.data(), text.data() + text.size(), threads);
        if (threads < 1) {
            std::fprintf(stderr, "expert_bench: %s is no number of threads\n", text.data());
            return 1;
        }
        counts.push_back(threads);
    }
    if (counts.empty()) {
        const int cores = available_physical_cores();
        for (int threads = 1; threads < cores; threads *= 2) counts.push_back(threads);
        counts.push_back(cores);
    }
    const engine::ExpertShape shape = engine::usual_expert();
    std::printf("%s, %s; each of 1, 2, 4, 8 experts at once\n", shape.kind.c_str(),
                cpu::kernels().name.data());
    std::printf("threads | reading GB/s | region us | an expert (share of reading)\n");
    for (const int threads : counts) engine::print_row(threads, shape);
}
