#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "base/worker_share.h"
#include "engine/forward/activation_store.h"
#include "engine/forward/split_groups.h"
#include "kernels/cpu/kernels.h"
#include "models/layer_ops.h"

namespace coterie::engine {

/// One of an expert's three matrices.
struct ExpertTensor {
    DataType type;
    const std::byte* data;
    std::int64_t row_bytes;
    std::int64_t columns;
    std::int64_t rows;
    float scale;
    const float* bias;  ///< [rows] or null
};

ExpertTensor expert_tensor(const models::Matrix& weight);
ExpertTensor expert_tensor(const models::ExpertMatrix& weight, std::int64_t expert);

/// In place of an expert's number: a shared expert or a dense layer, which every token uses.
inline constexpr std::int32_t kNotRouted = -1;

/// One expert and the tokens that chose it: assignments [first, first + count) of the pass.
struct ExpertJob {
    std::int32_t expert;
    ExpertTensor gate;
    ExpertTensor up;
    ExpertTensor down;
    models::FfnActivation activation;
    std::int64_t first;
    std::int64_t count;
};

/// How an expert's output enters a token's sum: y = fma(weight, output, y), or y = y + output.
struct Contribution {
    std::int32_t assignment;
    bool weighted;
    float weight;
};

/// The work of one feed-forward layer for all tokens of a step.
struct ExpertPlan {
    std::vector<ExpertJob> jobs;
    std::vector<std::int32_t> tokens;         ///< [assignments]: the input row; sorted by job
    std::vector<Contribution> contributions;  ///< [rows][per_token], in the order of summation
    std::int64_t per_token = 0;
};

/// out[t] = the sum of token t's contributions in their order, from +0; `outputs[a]` is assignment a's row.
void combine_outputs(ThreadPool& pool, const cpu::KernelTable& kernels, const ExpertPlan& plan,
                     std::span<const float* const> outputs, float* out, std::int64_t out_stride,
                     std::int64_t rows, std::int64_t output_width);

/// Computes gate, up, activation and down of all experts of a step in one parallel region with one barrier,
/// and adds each token's outputs in rank order. Each weight is read once however many tokens share the
/// expert.
///
/// Before the barrier a task is 32 rows of gate and up of one expert: one activation group of the result,
/// which the task quantises itself. After it a task is a strip of output columns over all experts, so that
/// the task can also add the outputs up and no second barrier is needed.
///
/// A few experts of one token (a decode step's misses) have too few such tasks for many workers: 24 tasks of
/// 32 rows keep 16 workers busy for the time of 32. There each worker gets one equal stretch of every matrix
/// instead, known ahead, so that its memory stream goes on while it waits at the barrier. Results do not
/// depend on it: a row is a row.
class ExpertPass {
  public:
    /// Room for steps of `max_tokens` rows with `max_assignments` (token, expert) pairs, whose intermediate
    /// rows take `hidden_groups` stored groups together. `keep_values`: some down matrix is F32, F16 or BF16
    /// and reads them unquantised.
    struct Capacity {
        std::int64_t max_tokens;
        std::int64_t max_assignments;
        std::int64_t hidden_groups;
        bool keep_values;
    };
    ExpertPass(ThreadPool& pool, const Capacity& capacity);

    ThreadPool& pool() const { return pool_; }

    /// inputs[t] and out + t * out_stride belong to row t of the step.
    void run(const cpu::KernelTable& kernels, const ExpertPlan& plan, std::span<const ActivationRow> inputs,
             float* out, std::int64_t out_stride, std::int64_t output_width);

    /// Some of the plan's jobs, not added up: assignment a's output goes to outputs + a * output_width.
    void compute(const cpu::KernelTable& kernels, const ExpertPlan& plan, std::span<const ExpertJob> jobs,
                 std::span<const ActivationRow> inputs, float* outputs, std::int64_t output_width);

  private:
    struct Scratch {
        AlignedBuffer<float> gate;    ///< [max_tokens][32]
        AlignedBuffer<float> up;      ///< [max_tokens][32]
        AlignedBuffer<float> output;  ///< [assignments][strip]
    };
    /// down(scratch, first column, columns)
    using DownStrip = FunctionRef<void(Scratch&, std::int64_t, std::int64_t)>;

    std::int64_t place_rows(const ExpertPlan& plan, std::span<const ExpertJob> jobs,
                            std::span<const ActivationRow> inputs);
    void two_phases(const cpu::KernelTable& kernels, std::span<const ExpertJob> jobs, std::int64_t strips,
                    std::int64_t columns, std::int64_t output_width, DownStrip down);
    bool goes_in_shares(std::span<const ExpertJob> jobs, std::int64_t strips) const;
    void run_share(const cpu::KernelTable& kernels, std::span<const ExpertJob> jobs, int worker,
                   std::int64_t output_width, DownStrip down);
    void gate_up_share(const cpu::KernelTable& kernels, const ExpertJob& job, std::int64_t first_group,
                       const IndexRange& rows);
    void gate_up(const cpu::KernelTable& kernels, std::span<const ExpertJob> jobs, std::int64_t strips,
                 Scratch& scratch);
    void gate_up_strip(const cpu::KernelTable& kernels, const ExpertJob& job, std::int64_t first_group,
                       std::int64_t strip, Scratch& scratch);
    void finish_group(const cpu::KernelTable& kernels, const ExpertJob& job, float* gate, const float* up,
                      std::int64_t rows, std::int64_t group);
    void down_strip(const cpu::KernelTable& kernels, const ExpertPlan& plan, std::int64_t begin,
                    std::int64_t count, float* out, std::int64_t out_stride, std::int64_t rows,
                    Scratch& scratch);
    std::int64_t strip_columns(std::int64_t assignments, std::int64_t output_width) const;

    ThreadPool& pool_;
    const Capacity capacity_;
    const std::int64_t strip_capacity_;       ///< floats of Scratch::output
    ActivationStore hidden_;                  ///< intermediate rows, quantised, one after the other
    AlignedBuffer<float> hidden_values_;      ///< the same in binary32, or nothing
    std::vector<ActivationRow> input_rows_;   ///< [assignments], sorted by job
    std::vector<ActivationRow> hidden_rows_;  ///< [assignments]
    std::vector<std::int64_t> first_strip_;   ///< [jobs + 1]: prefix sums of gate/up strips
    std::vector<std::int64_t> first_group_;   ///< [jobs]: where the job's intermediate rows start
    std::vector<Scratch> scratch_;            ///< [workers]
    SplitGroups split_;
    TaskQueue gate_up_queue_;
    TaskQueue down_queue_;
};

}  // namespace coterie::engine
