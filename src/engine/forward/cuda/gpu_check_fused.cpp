#include <string>

#include "engine/forward/cuda/gpu_check.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/moe.h"
#include "kernels/reference/reference.h"
#include "quant/random_blocks.h"

// Kernels that do in one what those of the other parts do one after the other: a generated token's.
namespace coterie::engine {
namespace {

using Floats = std::vector<float>;

constexpr std::int32_t kColumns = 768;  ///< whole blocks of every type
constexpr float kEpsilon = 1e-6f;

std::string kernel_name(const char* kernel, DataType type) {
    return std::string(kernel) + " " + std::string(traits(type).name);
}

/// A row that a kernel adds to and normalises, and what the law makes of it.
class TestNorm {
  public:
    explicit TestNorm(GpuCheck& check)
        : check_(check), sum_(kColumns), normed_(kColumns), row_(normed_law(check)) {
        input_.x = check.put(x_);
        input_.y = check.put(y_);
        input_.sum = check.take<float>(kColumns);
        input_.stride = kColumns;
        input_.weight = check.put(weight_);
        input_.width = kColumns;
        input_.epsilon = kEpsilon;
        input_.out = check.take<float>(kColumns);
        input_.quantised = take_quantised(check, 1, kColumns);
    }
    const cuda::NormedInput& input() const { return input_; }
    ActivationRow row() const { return row_.view(); }
    void expect_stored(const std::string& kernel) const {
        check_.expect(kernel, input_.sum, sum_);
        check_.expect(kernel, input_.out, normed_);
        check_.expect_quantised(kernel, input_.quantised, 0, normed_);
    }

  private:
    std::span<const float> normed_law(GpuCheck& check) {
        x_ = check.random_values(kColumns);
        y_ = check.random_values(kColumns);
        weight_ = check.random_values(kColumns);
        reference::add(x_.data(), y_.data(), kColumns, sum_.data());
        reference::rms_norm(sum_.data(), weight_.data(), kColumns, kEpsilon, normed_.data());
        return normed_;
    }

    GpuCheck& check_;
    Floats x_, y_, weight_, sum_, normed_;
    LawRow row_;
    cuda::NormedInput input_;
};

struct TestRowsOfWeights {
    TestRowsOfWeights(GpuCheck& check, DataType type, std::int64_t rows)
        : row_bytes(coterie::row_bytes(type, kColumns).value()),
          data(static_cast<std::size_t>(rows * row_bytes)) {
        RandomBlocks(type, 0.05f)
            .fill(check.random(), rows * kColumns / traits(type).block_values, data.data());
    }
    std::int64_t row_bytes;
    std::vector<std::byte> data;
};

}  // namespace

void check_normed_products(GpuCheck& check, DataType type) {
    constexpr std::int64_t kRows = 37;
    const cuda::NormedMatmul kernel = cuda::matmul_kernels(type)->normed_matmul;
    if (kernel == nullptr || !cuda::takes_normed(kColumns)) return;
    check.clear();
    const TestNorm norm(check);
    const TestRowsOfWeights weights(check, type, kRows);
    cuda::MatmulArgs args;
    args.jobs[0] = {.weights = check.put(weights.data),
                    .row_bytes = weights.row_bytes,
                    .rows = static_cast<std::int32_t>(kRows),
                    .out = check.take<float>(kRows),
                    .out_stride = kRows};
    args.count = 1;
    args.columns = kColumns;
    args.tokens = 1;
    kernel(args, norm.input(), 1, check.handle());
    Floats law;
    for (std::int64_t r = 0; r < kRows; ++r)
        law.push_back(traits(type).dot(weights.data.data() + r * weights.row_bytes, norm.row()));
    check.expect(kernel_name("normed_matmul", type), args.jobs[0].out, law);
    norm.expect_stored(kernel_name("normed_matmul", type));
}

void check_normed_route(GpuCheck& check, const cpu::Routing& routing) {
    if (!cuda::routes_normed(static_cast<std::int32_t>(routing.experts), kColumns)) return;
    check.clear();
    const TestNorm norm(check);
    const Floats weights = check.random_values(routing.experts * kColumns);
    cuda::RouterArgs router;
    router.input = norm.input();
    router.weights = check.put(weights);
    router.logits = check.take<float>(routing.experts);
    router.arrivals = check.put(std::vector<std::uint32_t>{0});
    const TestRoute route(check, routing);
    cuda::RouteArgs args = route.args();
    args.x = {router.input.out, router.input.stride, router.input.quantised};
    args.columns = kColumns;
    cuda::route_normed(router, args, check.handle());
    Floats logits;
    for (std::int64_t e = 0; e < routing.experts; ++e)
        logits.push_back(reference::dot_f32(weights.data() + e * kColumns, norm.row().values, kColumns));
    check.expect("route_normed", router.logits, logits);
    route.expect("route_normed", args, logits);
    norm.expect_stored("route_normed");
}

void check_expert_combine(GpuCheck& check, DataType type) {
    constexpr std::int32_t kUsed = 3;
    constexpr std::int32_t kRows = 70;
    constexpr std::int32_t kStride = 96;
    const cuda::ExpertCombine kernel = cuda::matmul_kernels(type)->expert_combine;
    if (kernel == nullptr) return;
    check.clear();
    const TestRows hidden(check, kUsed, kColumns);
    const Floats weights = check.random_values(kUsed);
    Floats law(kRows, 0.0f);
    std::vector<std::uint64_t> slots;
    cuda::ExpertMatmulArgs down;
    for (std::int64_t rank = 0; rank < kUsed; ++rank) {
        const TestRowsOfWeights expert(check, type, kRows);
        slots.push_back(reinterpret_cast<std::uint64_t>(check.put(expert.data)));
        down.row_bytes = expert.row_bytes;
        Floats product;
        for (std::int64_t r = 0; r < kRows; ++r)
            product.push_back(traits(type).dot(expert.data.data() + r * expert.row_bytes, hidden.row(rank)));
        reference::add_scaled(product.data(), weights[static_cast<std::size_t>(rank)], kRows, law.data());
    }
    down.slots = check.put(slots);
    down.experts = check.put(std::vector<std::int32_t>(kUsed, 0));
    down.pairs = kUsed;
    down.rows = kRows;
    down.columns = kColumns;
    down.x = hidden.on_device();
    cuda::CombineArgs args;
    args.used = kUsed;
    args.out = {check.take<float>(kStride), kStride, 1, kRows};
    args.slots = down.slots;
    args.weights = check.put(weights);
    args.counters.step = check.put(std::vector<std::uint64_t>{1});
    args.counters.missing = check.put(std::vector<std::uint32_t>{0});
    kernel(down, args, check.handle());
    check.expect(kernel_name("expert_combine", type), args.out.data, law);
}

}  // namespace coterie::engine
