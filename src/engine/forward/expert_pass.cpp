#include "engine/forward/expert_pass.h"

#include <algorithm>

#include "base/error.h"
#include "engine/forward/matmul_strip.h"

namespace coterie::engine {
namespace {

constexpr std::int64_t kStrip = kGroupValues;
constexpr std::int64_t kMaxStripColumns = 256;
// Outputs of one strip stay in a core's second-level cache.
constexpr std::int64_t kStripFloats = 96 * 1024;

// With fewer gate/up strips a worker than this, a strip more or less is felt: equal shares do better.
constexpr std::int64_t kFewStrips = 8;
constexpr std::int64_t kShareRows = 4;
constexpr std::int64_t kShareColumns = 16;  ///< a cache line of output
// Of what comes after the present stretch: what the kernels' own prefetching lacks at a stretch's start.
constexpr std::int64_t kStretchHeadBytes = 2048;
// Of what comes after the barrier: less than any second-level cache holds.
constexpr std::int64_t kAheadBytes = 128 * 1024;

void activate(const cpu::KernelTable& kernels, models::FfnActivation activation, const float* gate,
              const float* up, std::int64_t n, float* out) {
    switch (activation) {
        case models::FfnActivation::SwiGlu:
            kernels.swiglu(gate, up, n, out);
            return;
        case models::FfnActivation::SwiGluOai:
            kernels.swiglu_oai(gate, up, n, out);
            return;
    }
}

/// Asks for rows of a matrix that come soon, `most_bytes` at most.
StretchPrefetch ahead_of(const ExpertTensor& matrix, const IndexRange& rows, std::int64_t most_bytes) {
    return {matrix.data + rows.begin * matrix.row_bytes,
            std::min(rows.size() * matrix.row_bytes, most_bytes)};
}

void fetch(StretchPrefetch stretch) {
    while (!stretch.done()) stretch.step();
}

/// Adds a row's contribution to columns of its token's sum, by the law.
void add_contribution(const cpu::KernelTable& kernels, const Contribution& contribution, const float* output,
                      std::int64_t count, float* sum) {
    if (contribution.weighted) {
        kernels.add_scaled(output, contribution.weight, count, sum);
    } else {
        kernels.add(sum, output, count, sum);
    }
}

}  // namespace

ExpertTensor expert_tensor(const models::Matrix& weight) {
    return {weight.type,
            weight.data,
            weight.row_bytes,
            weight.columns,
            weight.rows,
            weight.scale,
            weight.bias.empty() ? nullptr : weight.bias.data()};
}

ExpertTensor expert_tensor(const models::ExpertMatrix& weight, std::int64_t expert) {
    return {weight.type,           weight.data[static_cast<std::size_t>(expert)],
            weight.row_bytes,      weight.columns,
            weight.rows,           weight.scale(expert),
            weight.bias_of(expert)};
}

void combine_outputs(ThreadPool& pool, const cpu::KernelTable& kernels, const ExpertPlan& plan,
                     std::span<const float* const> outputs, float* out, std::int64_t out_stride,
                     std::int64_t rows, std::int64_t output_width) {
    const auto combine_row = [&](std::int64_t t) {
        float* sum = out + t * out_stride;
        std::fill_n(sum, output_width, 0.0f);
        const Contribution* contribution = plan.contributions.data() + t * plan.per_token;
        for (std::int64_t i = 0; i < plan.per_token; ++i, ++contribution) {
            const float* output = outputs[static_cast<std::size_t>(contribution->assignment)];
            add_contribution(kernels, *contribution, output, output_width, sum);
        }
    };
    if (rows == 1) return combine_row(0);
    pool.parallel_for(rows, 1, [&](std::int64_t t, std::int64_t end) {
        for (; t < end; ++t) combine_row(t);
    });
}

ExpertPass::ExpertPass(ThreadPool& pool, const Capacity& capacity)
    : pool_(pool),
      capacity_(capacity),
      strip_capacity_(std::max(kStripFloats, capacity.max_assignments * kStrip)),
      hidden_(capacity.hidden_groups),
      hidden_values_(capacity.keep_values ? static_cast<std::size_t>(capacity.hidden_groups * kGroupValues)
                                          : 0),
      input_rows_(static_cast<std::size_t>(capacity.max_assignments)),
      hidden_rows_(static_cast<std::size_t>(capacity.max_assignments)),
      scratch_(static_cast<std::size_t>(pool.size())),
      split_(kFewStrips * pool.size() + stored_groups(1)) {
    for (Scratch& scratch : scratch_) {
        scratch.gate = AlignedBuffer<float>(static_cast<std::size_t>(capacity.max_tokens * kStrip));
        scratch.up = AlignedBuffer<float>(static_cast<std::size_t>(capacity.max_tokens * kStrip));
        scratch.output = AlignedBuffer<float>(static_cast<std::size_t>(strip_capacity_));
    }
}

std::int64_t ExpertPass::place_rows(const ExpertPlan& plan, std::span<const ExpertJob> jobs,
                                    std::span<const ActivationRow> inputs) {
    first_strip_.assign(1, 0);
    first_group_.clear();
    std::int64_t group = 0;
    for (const ExpertJob& job : jobs) {
        first_strip_.push_back(first_strip_.back() + activation_groups(job.gate.rows));
        first_group_.push_back(group);
        for (std::int64_t a = job.first; a < job.first + job.count; ++a) {
            const auto i = static_cast<std::size_t>(a);
            const float* values =
                capacity_.keep_values ? hidden_values_.data() + group * kGroupValues : nullptr;
            input_rows_[i] = inputs[static_cast<std::size_t>(plan.tokens[i])];
            hidden_rows_[i] = hidden_.view(group, job.down.columns, values);
            group += stored_groups(job.down.columns);
        }
    }
    COTERIE_CHECK(group <= capacity_.hidden_groups);
    return first_strip_.back();
}

void ExpertPass::run(const cpu::KernelTable& kernels, const ExpertPlan& plan,
                     std::span<const ActivationRow> inputs, float* out, std::int64_t out_stride,
                     std::int64_t output_width) {
    const auto assignments = static_cast<std::int64_t>(plan.tokens.size());
    COTERIE_CHECK(assignments <= capacity_.max_assignments);
    const std::int64_t strips = place_rows(plan, plan.jobs, inputs);
    const std::int64_t columns = strip_columns(assignments, output_width);
    const auto rows = static_cast<std::int64_t>(inputs.size());

    two_phases(kernels, plan.jobs, strips, columns, output_width,
               [&](Scratch& scratch, std::int64_t begin, std::int64_t count) {
                   down_strip(kernels, plan, begin, count, out, out_stride, rows, scratch);
               });
}

void ExpertPass::compute(const cpu::KernelTable& kernels, const ExpertPlan& plan,
                         std::span<const ExpertJob> jobs, std::span<const ActivationRow> inputs,
                         float* outputs, std::int64_t output_width) {
    const std::int64_t strips = place_rows(plan, jobs, inputs);
    two_phases(kernels, jobs, strips, strip_columns(0, output_width), output_width,
               [&](Scratch&, std::int64_t begin, std::int64_t count) {
                   for (const ExpertJob& job : jobs) {
                       matmul_strip(kernels, job.down, begin, count, hidden_rows_.data() + job.first,
                                    job.count, outputs + job.first * output_width + begin, output_width);
                   }
               });
}

void ExpertPass::two_phases(const cpu::KernelTable& kernels, std::span<const ExpertJob> jobs,
                            std::int64_t strips, std::int64_t columns, std::int64_t output_width,
                            DownStrip down) {
    if (goes_in_shares(jobs, strips)) {
        return pool_.run([&](int worker) { run_share(kernels, jobs, worker, output_width, down); });
    }
    gate_up_queue_.reset();
    down_queue_.reset();
    pool_.run([&](int worker) {
        Scratch& scratch = scratch_[static_cast<std::size_t>(worker)];
        gate_up(kernels, jobs, strips, scratch);
        pool_.barrier();
        for (std::int64_t c = down_queue_.take(columns); c < output_width; c = down_queue_.take(columns)) {
            down(scratch, c, std::min(columns, output_width - c));
        }
    });
}

bool ExpertPass::goes_in_shares(std::span<const ExpertJob> jobs, std::int64_t strips) const {
    if (jobs.empty() || strips >= kFewStrips * pool_.size()) return false;
    const std::int64_t groups = first_group_.back() + stored_groups(jobs.back().down.columns);
    return groups <= split_.groups() &&
           std::all_of(jobs.begin(), jobs.end(), [](const ExpertJob& job) { return job.count == 1; });
}

void ExpertPass::run_share(const cpu::KernelTable& kernels, std::span<const ExpertJob> jobs, int worker,
                           std::int64_t output_width, DownStrip down) {
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        gate_up_share(kernels, jobs[j], first_group_[j],
                      worker_share(jobs[j].gate.rows, kShareRows, worker, pool_.size()));
    }
    // While a worker waits for the last one memory would be idle, and then be asked by all at once.
    const IndexRange mine = worker_share(output_width, kShareColumns, worker, pool_.size());
    const std::int64_t ahead_bytes = kAheadBytes / static_cast<std::int64_t>(jobs.size());
    const ExpertJob* job = jobs.data();
    StretchPrefetch ahead = ahead_of(job->down, mine, ahead_bytes);
    pool_.barrier([&] {
        if (ahead.done() && job != &jobs.back()) ahead = ahead_of((++job)->down, mine, ahead_bytes);
        ahead.step();
    });
    Scratch& scratch = scratch_[static_cast<std::size_t>(worker)];
    for (std::int64_t c = mine.begin; c < mine.end; c += kMaxStripColumns)
        down(scratch, c, std::min(kMaxStripColumns, mine.end - c));
}

void ExpertPass::gate_up_share(const cpu::KernelTable& kernels, const ExpertJob& job,
                               std::int64_t first_group, const IndexRange& rows) {
    if (rows.size() == 0) return;
    const ActivationRow* input = input_rows_.data() + job.first;
    fetch(ahead_of(job.up, rows, kStretchHeadBytes));
    matmul_strip(kernels, job.gate, rows.begin, rows.size(), input, 1, split_.gate(first_group) + rows.begin,
                 job.gate.rows);
    matmul_strip(kernels, job.up, rows.begin, rows.size(), input, 1, split_.up(first_group) + rows.begin,
                 job.gate.rows);
    for (std::int64_t row = rows.begin; row < rows.end;) {
        const std::int64_t strip = row / kStrip;
        const std::int64_t group_end = std::min((strip + 1) * kStrip, job.gate.rows);
        const std::int64_t end = std::min(group_end, rows.end);
        const std::int64_t group = first_group + strip;
        const std::int64_t group_rows = group_end - strip * kStrip;
        if (split_.completes(group, end - row, group_rows))
            finish_group(kernels, job, split_.gate(group), split_.up(group), group_rows, group);
        row = end;
    }
}

void ExpertPass::gate_up(const cpu::KernelTable& kernels, std::span<const ExpertJob> jobs,
                         std::int64_t strips, Scratch& scratch) {
    std::size_t job = 0;
    for (std::int64_t strip = gate_up_queue_.take(1); strip < strips; strip = gate_up_queue_.take(1)) {
        while (strip >= first_strip_[job + 1]) ++job;
        gate_up_strip(kernels, jobs[job], first_group_[job], strip - first_strip_[job], scratch);
    }
}

void ExpertPass::gate_up_strip(const cpu::KernelTable& kernels, const ExpertJob& job,
                               std::int64_t first_group, std::int64_t strip, Scratch& scratch) {
    const std::int64_t begin = strip * kStrip;
    const std::int64_t count = std::min(kStrip, job.gate.rows - begin);
    const ActivationRow* inputs = input_rows_.data() + job.first;
    matmul_strip(kernels, job.gate, begin, count, inputs, job.count, scratch.gate.data(), kStrip);
    matmul_strip(kernels, job.up, begin, count, inputs, job.count, scratch.up.data(), kStrip);
    for (std::int64_t t = 0; t < job.count; ++t) {
        finish_group(kernels, job, scratch.gate.data() + t * kStrip, scratch.up.data() + t * kStrip, count,
                     first_group + t * stored_groups(job.down.columns) + strip);
    }
}

/// Activates and quantises a group of one token's intermediate row; `gate` is overwritten.
void ExpertPass::finish_group(const cpu::KernelTable& kernels, const ExpertJob& job, float* gate,
                              const float* up, std::int64_t rows, std::int64_t group) {
    activate(kernels, job.activation, gate, up, rows, gate);
    std::fill(gate + rows, gate + kStrip, 0.0f);
    if (capacity_.keep_values) std::copy_n(gate, kStrip, hidden_values_.data() + group * kGroupValues);
    kernels.quantise_activation(gate, kStrip, hidden_.target(group));
}

void ExpertPass::down_strip(const cpu::KernelTable& kernels, const ExpertPlan& plan, std::int64_t begin,
                            std::int64_t count, float* out, std::int64_t out_stride, std::int64_t rows,
                            Scratch& scratch) {
    for (const ExpertJob& job : plan.jobs) {
        matmul_strip(kernels, job.down, begin, count, hidden_rows_.data() + job.first, job.count,
                     scratch.output.data() + job.first * count, count);
    }
    const Contribution* contribution = plan.contributions.data();
    for (std::int64_t t = 0; t < rows; ++t) {
        float* sum = out + t * out_stride + begin;
        std::fill_n(sum, count, 0.0f);
        for (std::int64_t i = 0; i < plan.per_token; ++i, ++contribution) {
            add_contribution(kernels, *contribution, scratch.output.data() + contribution->assignment * count,
                             count, sum);
        }
    }
}

std::int64_t ExpertPass::strip_columns(std::int64_t assignments, std::int64_t output_width) const {
    // Long strips read long stretches of memory; at least four strips a worker keep the workers evenly
    // loaded.
    const std::int64_t fair = output_width / (4 * pool_.size());
    const std::int64_t fits = strip_capacity_ / std::max<std::int64_t>(assignments, 1);
    return std::clamp(std::min(fair, fits) / kStrip * kStrip, kStrip, kMaxStripColumns);
}

}  // namespace coterie::engine
