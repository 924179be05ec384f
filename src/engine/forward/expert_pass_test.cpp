#include "engine/forward/expert_pass.h"

#include <cstring>
#include <gtest/gtest.h>

#include "base/split_mix.h"
#include "quant/random_blocks.h"

namespace coterie::engine {
namespace {

constexpr std::uint64_t kSeed = 20;

struct Shape {
    DataType type;
    std::int64_t width;
    std::int64_t hidden;
};

/// Experts with random weights and biases, and one token's row.
class Experts {
  public:
    Experts(const Shape& shape, std::int64_t experts) : shape_(shape), random_(kSeed), row_(shape.width) {
        for (float& value : row_) value = random_.next_float() - 0.5f;
        row_.resize(static_cast<std::size_t>(stored_groups(shape.width) * kGroupValues));
        cpu::kernels().quantise_activation(row_.data(), shape.width, quantised_.target(0));
        plan_.per_token = experts;
        for (std::int32_t e = 0; e < experts; ++e) {
            plan_.jobs.push_back({e, tensor(shape.hidden, shape.width), tensor(shape.hidden, shape.width),
                                  tensor(shape.width, shape.hidden), models::FfnActivation::SwiGlu, e, 1});
            plan_.tokens.push_back(0);
            plan_.contributions.push_back({e, true, 0.25f * static_cast<float>(e + 1)});
        }
    }

    /// The experts' sum and each expert's output, on so many workers, each twice.
    std::vector<float> outputs(int workers) {
        ThreadPool pool(workers);
        const auto experts = static_cast<std::int64_t>(plan_.jobs.size());
        ExpertPass pass(pool, {.max_tokens = 1,
                               .max_assignments = experts,
                               .hidden_groups = experts * stored_groups(shape_.hidden),
                               .keep_values = true});
        const std::array inputs{quantised_.view(0, shape_.width, row_.data())};
        const auto width = static_cast<std::size_t>(shape_.width);
        std::vector<float> out(2 * width * (plan_.jobs.size() + 1));
        for (std::size_t round = 0; round < 2; ++round) {
            float* to = out.data() + round * out.size() / 2;
            pass.run(cpu::kernels(), plan_, inputs, to, shape_.width, shape_.width);
            pass.compute(cpu::kernels(), plan_, plan_.jobs, inputs, to + width, shape_.width);
        }
        return out;
    }

  private:
    ExpertTensor tensor(std::int64_t rows, std::int64_t columns) {
        const std::int64_t bytes = *row_bytes(shape_.type, columns);
        std::vector<std::byte>& data = weights_.emplace_back(static_cast<std::size_t>(rows * bytes));
        RandomBlocks(shape_.type, 0.05f)
            .fill(random_, rows * columns / traits(shape_.type).block_values, data.data());
        std::vector<float>& bias = biases_.emplace_back(static_cast<std::size_t>(rows));
        for (float& value : bias) value = random_.next_float() - 0.5f;
        return {shape_.type, data.data(), bytes, columns, rows, 0.5f, bias.data()};
    }

    Shape shape_;
    SplitMix64 random_;
    std::vector<float> row_;
    ActivationStore quantised_{stored_groups(4096)};
    std::vector<std::vector<std::byte>> weights_;
    std::vector<std::vector<float>> biases_;
    ExpertPlan plan_;
};

TEST(ExpertPass, GivesTheSameBitsOnAnyNumberOfWorkers) {
    const std::array shapes{Shape{DataType::Q4_K, 512, 768}, Shape{DataType::Q8_0, 416, 352},
                            Shape{DataType::F32, 50, 37}, Shape{DataType::F16, 1, 70}};
    for (const Shape& shape : shapes) {
        for (const std::int64_t experts : {1, 2, 3}) {
            Experts job(shape, experts);
            const std::vector<float> expected = job.outputs(1);
            ASSERT_TRUE(std::any_of(expected.begin(), expected.end(), [](float x) { return x != 0.0f; }));
            for (const int workers : {2, 3, 5, 8, 16}) {
                const std::vector<float> outputs = job.outputs(workers);
                EXPECT_EQ(std::memcmp(outputs.data(), expected.data(), expected.size() * sizeof(float)), 0)
                    << traits(shape.type).name << " " << shape.width << " x " << shape.hidden << ", "
                    << experts << " experts, " << workers << " workers, seed " << kSeed;
            }
        }
    }
}

}  // namespace
}  // namespace coterie::engine
