#include "engine/forward/cpu_ops.h"

#include <algorithm>

#include "base/error.h"
#include "engine/forward/matmul_strip.h"

namespace coterie::engine {
namespace {

using models::Matrix;
using models::Projection;
using models::Value;
using models::Vector;

// A region costs about two microseconds; below this many floats one thread is faster.
constexpr std::int64_t kWorthARegion = 16 * 1024;
// Tokens that share one read of a head's matrix.
constexpr std::int64_t kHeadTokens = 16;

std::int64_t padded(std::int64_t columns) { return activation_groups(columns) * kGroupValues; }

bool quantised(DataType type) { return traits(type).uses_quantised_activation; }

const float* bias_of(const Matrix& weight) { return weight.bias.empty() ? nullptr : weight.bias.data(); }

/// Room for one token's intermediate rows: of its experts and the shared one, or of the dense network.
std::int64_t hidden_groups_per_token(const models::Extents& extents) {
    const std::int64_t moe =
        extents.experts_used * stored_groups(extents.expert_ffn) + stored_groups(extents.shared_ffn);
    return std::max(moe, stored_groups(extents.dense_ffn));
}

/// Rows per task: long enough to read memory in stretches, short enough for eight tasks a worker.
std::int64_t strip_rows(std::int64_t rows, int workers) {
    return std::clamp<std::int64_t>(rows / (8 * workers) / 16 * 16, 16, 128);
}

std::int64_t strips(std::int64_t rows, std::int64_t strip) { return (rows + strip - 1) / strip; }

}  // namespace

CpuOps::CpuOps(ThreadPool& pool, const models::Workspace& workspace, const models::Extents& extents,
               const OpsLimits& limits)
    : pool_(pool),
      kernels_(cpu::kernels()),
      extents_(extents),
      limits_(limits),
      quantised_(limits.max_tokens * stored_groups(extents.widest_input)),
      inputs_(static_cast<std::size_t>(limits.max_tokens)),
      expert_pass_(pool, {.max_tokens = limits.max_tokens,
                          .max_assignments = limits.max_tokens * (extents.experts_used + 1),
                          .hidden_groups = limits.max_tokens * hidden_groups_per_token(extents),
                          .keep_values = extents.float_down}),
      router_logits_(static_cast<std::size_t>(limits.max_tokens * extents.experts)),
      router_scratch_(static_cast<std::size_t>(limits.max_tokens * 3 * extents.experts)),
      chosen_(static_cast<std::size_t>(limits.max_tokens * extents.experts_used)),
      chosen_weights_(chosen_.size()),
      guessed_(chosen_.size()),
      guessed_weights_(chosen_.size()),
      shared_weights_(static_cast<std::size_t>(limits.max_tokens)),
      expert_counts_(static_cast<std::size_t>(extents.experts + 1)),
      convolved_(static_cast<std::size_t>(limits.max_tokens * extents.delta_net_channels)),
      head_inputs_(static_cast<std::size_t>(pool.size())),
      logits_input_(static_cast<std::size_t>(limits.max_logits_rows * padded(extents.embedding))),
      logits_(static_cast<std::size_t>(limits.max_logits_rows * extents.vocabulary)) {
    const auto max_tokens = static_cast<std::size_t>(limits.max_tokens);
    positions_.reserve(max_tokens);
    slice_of_.reserve(max_tokens);
    plan_.jobs.reserve(static_cast<std::size_t>(extents.experts) + 1);
    plan_.tokens.reserve(max_tokens * static_cast<std::size_t>(extents.experts_used + 1));
    plan_.contributions.reserve(plan_.tokens.capacity());
    for (HeadInputs& inputs : head_inputs_) inputs = HeadInputs(extents.widest_head);
    for (const std::int64_t width : workspace.widths()) {
        strides_.push_back(padded(width));
        values_.emplace_back(max_tokens * static_cast<std::size_t>(strides_.back()));
    }
}

CpuOps::HeadInputs::HeadInputs(std::int64_t columns)
    : values(static_cast<std::size_t>(kHeadTokens * padded(columns))),
      quants(kHeadTokens * stored_groups(columns)),
      rows(static_cast<std::size_t>(kHeadTokens)),
      stride(padded(columns)) {}

void CpuOps::HeadInputs::set(const cpu::KernelTable& kernels, std::int64_t i, std::span<const float> input) {
    const auto columns = static_cast<std::int64_t>(input.size());
    float* target = values.data() + i * stride;
    std::copy(input.begin(), input.end(), target);
    std::fill(target + columns, target + padded(columns), 0.0f);
    kernels.quantise_activation(target, columns, quants.target(i * stored_groups(columns)));
    rows[static_cast<std::size_t>(i)] = quants.view(i * stored_groups(columns), columns, target);
}

void CpuOps::begin(const Step& step) {
    COTERIE_CHECK(static_cast<std::int64_t>(step.tokens.size()) <= limits_.max_tokens);
    step_ = &step;
    positions_.clear();
    slice_of_.clear();
    for (std::size_t s = 0; s < step.slices.size(); ++s) {
        for (std::int64_t i = 0; i < step.slices[s].count; ++i) {
            positions_.push_back(step.slices[s].position + i);
            slice_of_.push_back(static_cast<std::int32_t>(s));
        }
    }
    COTERIE_CHECK(positions_.size() == step.tokens.size());
    rope_tables_.begin(positions_);
}

void CpuOps::for_rows_of(std::int64_t count, std::int64_t work, FunctionRef<void(std::int64_t)> body) {
    if (work < kWorthARegion || count == 1) {
        for (std::int64_t t = 0; t < count; ++t) body(t);
        return;
    }
    pool_.parallel_for(count, 4, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t t = begin; t < end; ++t) body(t);
    });
}

void CpuOps::embed(const Matrix& table, Value out) {
    for_rows(rows() * out.width, [&](std::int64_t t) {
        const std::int64_t token = step_->tokens[static_cast<std::size_t>(t)];
        traits(table.type).decode(table.data + token * table.row_bytes, table.columns, row(out, t));
    });
}

void CpuOps::rms_norm(Value x, const Vector& weight, float epsilon, Value out) {
    const auto run = static_cast<std::int64_t>(weight.size());
    for_rows(rows() * x.width, [&](std::int64_t t) {
        for (std::int64_t i = 0; i < x.width; i += run) {
            kernels_.rms_norm(row(x, t) + i, weight.data(), run, epsilon, row(out, t) + i);
        }
    });
}

void CpuOps::prepare_inputs(Value x, bool quantise) {
    const std::int64_t groups = stored_groups(x.width);
    for (std::int64_t t = 0; t < rows(); ++t) {
        inputs_[static_cast<std::size_t>(t)] = quantised_.view(t * groups, x.width, row(x, t));
    }
    if (!quantise) return;
    for_rows(rows() * x.width, [&](std::int64_t t) {
        kernels_.quantise_activation(row(x, t), x.width, quantised_.target(t * groups));
    });
}

void CpuOps::project(Value x, std::span<const Projection> projections) {
    const bool quantise = std::any_of(projections.begin(), projections.end(),
                                      [](const Projection& p) { return quantised(p.weight.type); });
    prepare_inputs(x, quantise);
    std::int64_t total_rows = 0;
    for (const Projection& p : projections) {
        COTERIE_CHECK(p.weight.columns == x.width && p.weight.rows == p.out.width);
        total_rows += p.weight.rows;
    }
    const std::int64_t strip = strip_rows(total_rows, pool_.size());
    std::int64_t tasks = 0;
    for (const Projection& p : projections) tasks += strips(p.weight.rows, strip);
    pool_.parallel_for(tasks, 1, [&](std::int64_t task, std::int64_t end) {
        for (; task < end; ++task) {
            const Projection* p = projections.data();
            std::int64_t index = task;
            while (index >= strips(p->weight.rows, strip)) index -= strips((p++)->weight.rows, strip);
            const std::int64_t begin = index * strip;
            matmul_strip(kernels_, p->weight, bias_of(p->weight), begin,
                         std::min(strip, p->weight.rows - begin), inputs_.data(), rows(),
                         row(p->out, 0) + begin, stride(p->out));
        }
    });
}

void CpuOps::project_heads(const models::ExpertMatrix& weight, Value x, std::int64_t x_stride,
                           std::int64_t x_offset, Value out, std::int64_t out_stride) {
    const auto heads = static_cast<std::int64_t>(weight.data.size());
    const std::int64_t blocks = (rows() + kHeadTokens - 1) / kHeadTokens;
    queue_.reset();
    pool_.run([&](int worker) {
        HeadInputs& inputs = head_inputs_[static_cast<std::size_t>(worker)];
        for (std::int64_t task = queue_.take(1); task < heads * blocks; task = queue_.take(1)) {
            const std::int64_t head = task / blocks;
            const std::int64_t first = task % blocks * kHeadTokens;
            const std::int64_t count = std::min(kHeadTokens, rows() - first);
            for (std::int64_t i = 0; i < count; ++i) {
                const float* input = row(x, first + i) + head * x_stride + x_offset;
                inputs.set(kernels_, i, {input, static_cast<std::size_t>(weight.columns)});
            }
            kernels_.matmul[static_cast<std::size_t>(weight.type)](
                {.weights = weight.data[static_cast<std::size_t>(head)],
                 .row_bytes = weight.row_bytes,
                 .columns = weight.columns,
                 .rows = weight.rows,
                 .activations = inputs.rows.data(),
                 .tokens = count,
                 .out = row(out, first) + head * out_stride,
                 .out_token_stride = stride(out)});
        }
    });
}

void CpuOps::add(Value x, Value y) {
    for_rows(rows() * x.width,
             [&](std::int64_t t) { kernels_.add(row(x, t), row(y, t), x.width, row(x, t)); });
}

void CpuOps::rope(Value x, std::int64_t head_width, std::int64_t offset, const models::Rope& rope) {
    const auto pairs = static_cast<std::int64_t>(rope.frequencies.size());
    const auto rotate =
        rope.style == models::RopeStyle::Adjacent ? kernels_.rope_adjacent : kernels_.rope_halves;
    static_cast<void>(rope_tables_.row(rope, 0));  // filled here, read by all workers
    for_rows(rows() * x.width, [&](std::int64_t t) {
        const RopeTables::Row table = rope_tables_.row(rope, t);
        for (std::int64_t i = offset; i < x.width; i += head_width) {
            rotate(row(x, t) + i, table.cosines, table.sines, pairs);
        }
    });
}

void CpuOps::copy_heads(Value x, std::int64_t x_stride, std::int64_t x_offset, Value out,
                        std::int64_t out_stride, std::int64_t out_offset, std::int64_t width,
                        std::int64_t heads) {
    for_rows(rows() * width * heads, [&](std::int64_t t) {
        for (std::int64_t h = 0; h < heads; ++h) {
            std::copy_n(row(x, t) + h * x_stride + x_offset, width,
                        row(out, t) + h * out_stride + out_offset);
        }
    });
}

void CpuOps::sigmoid_gate(Value x, Value gate) {
    for_rows(rows() * x.width, [&](std::int64_t t) {
        kernels_.sigmoid(row(gate, t), x.width, row(gate, t));
        kernels_.multiply(row(x, t), row(gate, t), x.width, row(x, t));
    });
}

void CpuOps::layer_done(int layer, Value residual) {
    if (step_->observer) step_->observer->layer_done(layer, row(residual, 0), rows(), stride(residual));
}

void CpuOps::logits(Value x, const Vector& norm, float epsilon, const Matrix& output) {
    const std::int64_t width = padded(x.width);
    const std::int64_t groups = stored_groups(x.width);
    const std::span<const std::int64_t> wanted = step_->logits_rows;
    for (std::size_t first = 0; first < wanted.size();
         first += static_cast<std::size_t>(limits_.max_logits_rows)) {
        const auto count =
            std::min<std::int64_t>(limits_.max_logits_rows, static_cast<std::int64_t>(wanted.size() - first));
        for (std::int64_t i = 0; i < count; ++i) {
            float* input = logits_input_.data() + i * width;
            kernels_.rms_norm(row(x, wanted[first + static_cast<std::size_t>(i)]), norm.data(), x.width,
                              epsilon, input);
            inputs_[static_cast<std::size_t>(i)] = quantised_.view(i * groups, x.width, input);
            if (quantised(output.type))
                kernels_.quantise_activation(input, x.width, quantised_.target(i * groups));
        }
        const std::int64_t strip = strip_rows(output.rows, pool_.size());
        pool_.parallel_for(strips(output.rows, strip), 1, [&](std::int64_t task, std::int64_t end) {
            for (; task < end; ++task) {
                const std::int64_t begin = task * strip;
                matmul_strip(kernels_, output, bias_of(output), begin, std::min(strip, output.rows - begin),
                             inputs_.data(), count, logits_.data() + begin, extents_.vocabulary);
            }
        });
        for (std::int64_t i = 0; i < count; ++i) {
            (*step_->logits)(
                wanted[first + static_cast<std::size_t>(i)],
                {logits_.data() + i * extents_.vocabulary, static_cast<std::size_t>(output.rows)});
        }
    }
}

}  // namespace coterie::engine
