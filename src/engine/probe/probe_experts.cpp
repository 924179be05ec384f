#include "engine/probe/probe_experts.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <sys/mman.h>
#include <variant>

#include "base/aligned_buffer.h"
#include "base/error.h"
#include "base/split_mix.h"
#include "engine/forward/expert_pass.h"
#include "engine/placement_facts.h"
#include "engine/probe/median.h"
#include "quant/random_blocks.h"

namespace coterie::engine {
namespace {

constexpr int kRounds = 15;
constexpr std::int64_t kFewestExperts = 8;
constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kPage = std::uint64_t{2} << 20;
constexpr float kRms = 0.02f;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }

models::ExpertMatrix matrix_of(DataType type, std::int64_t rows, std::int64_t columns) {
    const std::optional<std::int64_t> bytes = row_bytes(type, columns);
    COTERIE_CHECK(bytes.has_value());
    models::ExpertMatrix matrix;
    matrix.type = type;
    matrix.rows = rows;
    matrix.columns = columns;
    matrix.row_bytes = *bytes;
    return matrix;
}

std::uint64_t bytes_of(const models::ExpertMatrix& matrix) {
    return static_cast<std::uint64_t>(matrix.bytes_per_expert());
}

/// One row of random blocks.
std::vector<std::byte> random_row(const models::ExpertMatrix& matrix) {
    std::vector<std::byte> row(static_cast<std::size_t>(matrix.row_bytes));
    SplitMix64 random(1);
    RandomBlocks(matrix.type, kRms)
        .fill(random, matrix.columns / traits(matrix.type).block_values, row.data());
    return row;
}

/// Writes the expert's rows, all alike: products take as long as with any others.
void fill(const models::ExpertMatrix& matrix, const std::vector<std::byte>& row, std::int64_t expert) {
    auto* to = const_cast<std::byte*>(matrix.data[static_cast<std::size_t>(expert)]);
    for (std::int64_t r = 0; r < matrix.rows; ++r)
        std::memcpy(to + r * matrix.row_bytes, row.data(), row.size());
}

ExpertShape shape_of(const models::MoeFfn& ffn) {
    return {.kind = expert_kind(ffn).name,
            .activation = ffn.activation,
            .gate = ffn.gate.type,
            .up = ffn.up.type,
            .down = ffn.down.type,
            .width = ffn.gate.columns,
            .hidden = ffn.gate.rows};
}

/// Tokens' rows as inputs, both forms, and where their outputs go.
class Rows {
  public:
    Rows(std::int64_t tokens, std::int64_t columns)
        : values_(static_cast<std::size_t>(tokens * stored_groups(columns) * kGroupValues)),
          quantised_(tokens * stored_groups(columns)),
          outputs_(static_cast<std::size_t>(tokens * columns)) {
        SplitMix64 random(2);
        for (float& value : values_.span()) value = 2.0f * random.next_float() - 1.0f;
        for (std::int64_t t = 0; t < tokens; ++t) {
            const std::int64_t group = t * stored_groups(columns);
            const float* row = values_.data() + group * kGroupValues;
            cpu::kernels().quantise_activation(row, columns, quantised_.target(group));
            rows_.push_back(quantised_.view(group, columns, row));
        }
    }
    std::span<const ActivationRow> first(std::int64_t tokens) const {
        return {rows_.data(), static_cast<std::size_t>(tokens)};
    }
    float* outputs() { return outputs_.data(); }

  private:
    AlignedBuffer<float> values_;
    ActivationStore quantised_;
    AlignedBuffer<float> outputs_;
    std::vector<ActivationRow> rows_;
};

}  // namespace

ExpertShape usual_expert() { return {.kind = "Q4_K, Q4_K, Q4_K 768 x 2048"}; }

std::vector<ExpertShape> expert_shapes(const models::Model& model) {
    std::vector<ExpertShape> shapes;
    for (const models::Layer& layer : model.layers) {
        const auto* moe = std::get_if<models::MoeFfn>(&layer.ffn);
        if (moe == nullptr) continue;
        ExpertShape shape = shape_of(*moe);
        const bool known = std::any_of(shapes.begin(), shapes.end(),
                                       [&](const ExpertShape& other) { return other.kind == shape.kind; });
        if (!known) shapes.push_back(std::move(shape));
    }
    return shapes;
}

ProbeExperts::ProbeExperts(ThreadPool& pool, const ExpertShape& shape, std::size_t bytes)
    : shape_(shape),
      gate_(matrix_of(shape.gate, shape.hidden, shape.width)),
      up_(matrix_of(shape.up, shape.hidden, shape.width)),
      down_(matrix_of(shape.down, shape.width, shape.hidden)) {
    const std::uint64_t up = round_up(bytes_of(gate_), kAlignment);
    const std::uint64_t down = up + round_up(bytes_of(up_), kAlignment);
    stride_ = down + round_up(bytes_of(down_), kAlignment);
    const auto count = std::max(static_cast<std::int64_t>(bytes / stride_), kFewestExperts);
    bytes_ = round_up(static_cast<std::uint64_t>(count) * stride_, kPage);
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail(ErrorCode::OutOfMemory, "no memory for the {} MiB of experts that are timed", bytes_ >> 20);
    memory_ = static_cast<std::byte*>(memory);
    madvise(memory_, bytes_, MADV_HUGEPAGE);
    for (auto* matrix : {&gate_, &up_, &down_}) matrix->data.resize(static_cast<std::size_t>(count));
    place(gate_, 0);
    place(up_, up);
    place(down_, down);
    const std::array rows{random_row(gate_), random_row(up_), random_row(down_)};
    pool.parallel_for(count, 1, [&](std::int64_t e, std::int64_t end) {
        for (; e < end; ++e) {
            fill(gate_, rows[0], e);
            fill(up_, rows[1], e);
            fill(down_, rows[2], e);
        }
    });
}

ProbeExperts::~ProbeExperts() { munmap(memory_, bytes_); }

void ProbeExperts::place(models::ExpertMatrix& matrix, std::uint64_t offset) {
    for (std::size_t e = 0; e < matrix.data.size(); ++e) matrix.data[e] = memory_ + e * stride_ + offset;
}

ExpertTimes ProbeExperts::measure(ThreadPool& pool) const {
    constexpr std::int64_t kMostTokens = kProbedTokens.back();
    ExpertPass pass(pool, {.max_tokens = kMostTokens,
                           .max_assignments = kMostTokens,
                           .hidden_groups = kMostTokens * stored_groups(shape_.hidden),
                           .keep_values = !traits(shape_.down).uses_quantised_activation});
    Rows rows(kMostTokens, shape_.width);
    ExpertPlan plan;
    for (std::int32_t t = 0; t < kMostTokens; ++t) plan.tokens.push_back(t);
    std::int64_t next = 0;
    const auto time_one = [&](std::int64_t tokens) {
        const std::int64_t e = next++ % count();
        plan.jobs.assign(1, {static_cast<std::int32_t>(e), expert_tensor(gate_, e), expert_tensor(up_, e),
                             expert_tensor(down_, e), shape_.activation, 0, tokens});
        const auto start = std::chrono::steady_clock::now();
        pass.compute(cpu::kernels(), plan, plan.jobs, rows.first(tokens), rows.outputs(), shape_.width);
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    ExpertTimes times{.kind = shape_.kind,
                      .bytes = bytes_of(gate_) + bytes_of(up_) + bytes_of(down_),
                      .multiply_adds = 3 * shape_.hidden * shape_.width};
    const ThreadPool::Awake awake(pool);
    for (std::size_t i = 0; i < kProbedTokens.size(); ++i)
        times.seconds[i] = median_of(kRounds, [&] { return time_one(kProbedTokens[i]); });
    return times;
}

}  // namespace coterie::engine
