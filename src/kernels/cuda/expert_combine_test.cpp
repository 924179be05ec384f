#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <optional>

#include "kernels/cpu/ops_testing.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/weights_for_test.h"
#include "kernels/reference/reference.h"

namespace coterie::cuda {
namespace {

using namespace testing;
using cpu::testing::kSeed;
using cpu::testing::random_values;
using cpu::testing::Values;

constexpr std::int64_t kExperts = 5;
constexpr std::uint64_t kStep = 3;

struct Shape {
    std::int32_t tokens;
    std::int32_t used;
    std::int32_t rows;
    std::int64_t columns;
};

struct Parts {
    bool missing = false;  ///< some pairs: the host's
    bool linked = false;   ///< some pairs: read where the host has them
    bool scaled = false;   ///< scales and biases of experts
    bool shared = false;
    bool gated = false;
};

/// Down of a step's experts and their sum: inputs, a host that has answered, and the law.
class ExpertCombineForTest {
  public:
    ExpertCombineForTest(DataType type, const Shape& shape, const Parts& parts)
        : shape_(shape), parts_(parts), weights_(type, shape.columns, kExperts * shape.rows, kSeed) {
        choose();
        place_weights();
        host_answers();
    }

    ExpertMatmulArgs down() const {
        ExpertMatmulArgs args;
        args.slots = device_slots_.get();
        args.experts = device_experts_.get();
        args.offsets[0] = kOffset;
        args.hosts[0] = hosts_->get();
        args.scales[0] = parts_.scaled ? device_scales_.get() : nullptr;
        args.biases[0] = parts_.scaled ? device_biases_.get() : nullptr;
        args.pairs = shape_.tokens * shape_.used;
        args.rows = shape_.rows;
        args.columns = static_cast<std::int32_t>(shape_.columns);
        args.row_bytes = weights_.bytes;
        args.x = x_.view();
        return args;
    }
    CombineArgs combine() const {
        CombineArgs args;
        args.layer = 1;
        args.used = shape_.used;
        args.out = {out_.get(), stride(), shape_.tokens, shape_.rows};
        args.slots = device_slots_.get();
        args.weights = device_shares_.get();
        args.shared = parts_.shared ? device_shared_.get() : nullptr;
        args.shared_gate = parts_.gated ? device_gates_.get() : nullptr;
        args.counters.step = step_.get();
        args.counters.times = times_.get();
        args.counters.answered = answered_.get();
        args.mailbox.outputs = host_outputs_.get();
        args.mailbox.reply = flags_.get();
        args.mailbox.failed = flags_.get() + 16;
        return args;
    }
    void answer() const {
        std::atomic_thread_fence(std::memory_order_release);
        *static_cast<volatile std::uint64_t*>(flags_.get()) = epoch();
    }
    void take_answer_back() const { flags_[0] = 0; }
    /// Puts the host's rows where they will be found: in the order of (expert, pair).
    void write_host_rows() const {
        std::vector<std::size_t> order = missing_;
        std::stable_sort(order.begin(), order.end(),
                         [this](std::size_t a, std::size_t b) { return experts_[a] < experts_[b]; });
        for (std::size_t at = 0; at < order.size(); ++at) {
            for (std::size_t r = 0; r < rows(); ++r)
                host_outputs_[at * rows() + r] = host_values_[order[at] * rows() + r];
        }
    }
    void expect_law() const {
        const std::vector<float> result = out_.read();
        for (std::int32_t t = 0; t < shape_.tokens; ++t)
            EXPECT_TRUE(all_same(std::span(result).subspan(static_cast<std::size_t>(t * stride())), law(t)))
                << "token " << t;
        EXPECT_EQ(flags_[16], 0u);
        EXPECT_EQ(answered_.read()[0], missing_.empty() ? 0 : epoch());
    }
    std::uint64_t failed() const { return flags_[16]; }
    HandOffTimes times() const { return times_.read()[0]; }
    static std::uint64_t epoch() { return kStep * kEpochsPerStep + 2; }

  private:
    static constexpr std::uint64_t kOffset = 48;

    std::size_t rows() const { return static_cast<std::size_t>(shape_.rows); }
    std::size_t pairs() const { return static_cast<std::size_t>(shape_.tokens * shape_.used); }
    std::int64_t stride() const { return (shape_.rows + 31) / 32 * 32; }

    void choose() {
        for (std::size_t p = 0; p < pairs(); ++p) {
            experts_.push_back(static_cast<std::int32_t>((3 * p + 1) % kExperts));
            shares_.push_back(2.0f * random_.next_float() - 0.5f);
            if (parts_.missing && p % 3 == 1) missing_.push_back(p);
        }
        device_experts_.write(experts_);
        device_shares_.write(shares_);
    }

    /// A slot an expert on the device; the matrices alone where the link would find them.
    void place_weights() {
        const std::size_t bytes = rows() * static_cast<std::size_t>(weights_.bytes);
        slot_bytes_ = (bytes + kOffset + 31) / 16 * 16;
        std::vector<std::byte> memory(kExperts * slot_bytes_);
        for (std::size_t e = 0; e < kExperts; ++e)
            std::copy_n(weights_.data.data() + e * bytes, bytes, memory.data() + e * slot_bytes_ + kOffset);
        memory_.emplace(memory);
        const auto base = reinterpret_cast<std::uint64_t>(memory_->get());
        std::vector<std::uint64_t> hosts;
        for (std::size_t e = 0; e < kExperts; ++e) hosts.push_back(base + e * slot_bytes_ + kOffset);
        hosts_.emplace(hosts);
        std::vector<std::uint64_t> slots;
        for (std::size_t p = 0; p < pairs(); ++p)
            slots.push_back(base + static_cast<std::size_t>(experts_[p]) * slot_bytes_);
        if (parts_.linked)
            for (std::size_t p = 0; p < pairs(); p += 3) slots[p] = kOnHost;
        for (const std::size_t p : missing_) slots[p] = 0;
        device_slots_.write(slots);
    }

    void host_answers() {
        write_host_rows();
        answer();
    }

    float output(std::size_t pair, std::size_t r) const {
        if (std::find(missing_.begin(), missing_.end(), pair) != missing_.end())
            return host_values_[pair * rows() + r];
        const auto e = static_cast<std::size_t>(experts_[pair]);
        const std::size_t row = e * rows() + r;
        const float dot = weights_.dot(static_cast<std::int64_t>(row), inputs_[pair].row());
        return parts_.scaled ? dot * scales_[e] + biases_[row] : dot;
    }
    std::vector<float> law(std::int32_t t) const {
        std::vector<float> sum(rows(), 0.0f);
        for (std::int32_t rank = 0; rank < shape_.used; ++rank) {
            const auto pair = static_cast<std::size_t>(t * shape_.used + rank);
            std::vector<float> row;
            for (std::size_t r = 0; r < rows(); ++r) row.push_back(output(pair, r));
            reference::add_scaled(row.data(), shares_[pair], shape_.rows, sum.data());
        }
        const float* added = shared_.data() + t * stride();
        if (parts_.gated) {
            float share = 0.0f;
            reference::sigmoid(&gates_[static_cast<std::size_t>(t)], 1, &share);
            reference::add_scaled(added, share, shape_.rows, sum.data());
        } else if (parts_.shared) {
            reference::add(sum.data(), added, shape_.rows, sum.data());
        }
        return sum;
    }

    Shape shape_;
    Parts parts_;
    SplitMix64 random_{kSeed + 1};
    Weights weights_;
    std::vector<std::int32_t> experts_;
    std::vector<float> shares_;
    std::vector<std::size_t> missing_;  ///< pairs
    std::vector<ActivationForTest> inputs_ = random_rows(static_cast<std::int64_t>(pairs()), shape_.columns);
    std::vector<float> scales_ = random_values(Values::Ordinary, kExperts, random_);
    std::vector<float> biases_ = random_values(Values::Ordinary, kExperts* shape_.rows, random_);
    std::vector<float> shared_ = random_values(Values::Ordinary, shape_.tokens* stride(), random_);
    std::vector<float> gates_ = random_values(Values::Ordinary, shape_.tokens, random_);
    std::vector<float> host_values_ =
        random_values(Values::Ordinary, static_cast<std::int64_t>(pairs()) * shape_.rows, random_);
    std::size_t slot_bytes_ = 0;

    DeviceActivations x_{inputs_, shape_.columns};
    DeviceArray<float> device_scales_{scales_};
    DeviceArray<float> device_biases_{biases_};
    DeviceArray<float> device_shared_{shared_};
    DeviceArray<float> device_gates_{gates_};
    DeviceArray<std::int32_t> device_experts_{pairs()};
    DeviceArray<float> device_shares_{pairs()};
    DeviceArray<std::uint64_t> device_slots_{pairs()};
    std::optional<DeviceArray<std::byte>> memory_;
    std::optional<DeviceArray<std::uint64_t>> hosts_;
    DeviceArray<float> out_{static_cast<std::size_t>(shape_.tokens * stride())};
    DeviceArray<std::uint64_t> step_{std::vector<std::uint64_t>{kStep}};
    DeviceArray<std::uint64_t> answered_{std::vector<std::uint64_t>{0}};
    DeviceArray<HandOffTimes> times_{std::vector<HandOffTimes>(1)};
    MappedArray<float> host_outputs_{pairs() * rows()};
    MappedArray<std::uint64_t> flags_{32};
};

class ExpertCombine : public ::testing::TestWithParam<DataType> {
  protected:
    void SetUp() override {
        kernels_ = matmul_kernels(GetParam());
        if (kernels_->expert_combine == nullptr) GTEST_SKIP() << "computed by a product and a sum";
        if (kernels_->prepare != nullptr) kernels_->prepare();
    }
    void expect_law(const Shape& shape, const Parts& parts) const {
        SCOPED_TRACE(std::to_string(shape.tokens) + " tokens, " + std::to_string(shape.used) + " used");
        const ExpertCombineForTest test(GetParam(), shape, parts);
        for (int repetition = 0; repetition < 2; ++repetition)
            kernels_->expert_combine(test.down(), test.combine(), nullptr);
        test.expect_law();
    }
    const MatmulKernels* kernels_ = nullptr;
};

TEST_P(ExpertCombine, FollowsTheLaw) {
    const std::int64_t block = traits(GetParam()).block_values;
    expect_law({1, 8, 45, 3 * block}, {});
    expect_law({1, 8, 45, 3 * block}, {.missing = true, .scaled = true});
    expect_law({1, 2, 16, 7 * block}, {.linked = true, .shared = true});
    expect_law({1, 1, 5, block}, {.scaled = true, .shared = true, .gated = true});
    expect_law({3, 3, 33, block}, {.missing = true, .linked = true, .shared = true, .gated = true});
    expect_law({8, 8, 17, block}, {.missing = true, .linked = true, .scaled = true});
    // Rows that are too long for a block's shared memory are read where they are.
    if (takes_combined(GetParam(), 8, 4096)) expect_law({1, 8, 20, 4096}, {.missing = true, .linked = true});
}

INSTANTIATE_TEST_SUITE_P(Cuda, ExpertCombine, ::testing::ValuesIn(types_with_products()),
                         [](const auto& type) { return std::string(traits(type.param).name); });

constexpr Shape kManyBlocks{2, 8, 2048, 256};

/// Blocks that do not ask the host themselves see what it wrote all the same.
TEST(ExpertCombineWithHost, WaitsForAnAnswerThatComesLater) {
    const MatmulKernels& kernels = *matmul_kernels(DataType::Q4_K);
    const ExpertCombineForTest test(DataType::Q4_K, kManyBlocks, {.missing = true});
    test.take_answer_back();
    kernels.expert_combine(test.down(), test.combine(), nullptr);
    test.write_host_rows();
    test.answer();
    test.expect_law();
    EXPECT_GT(test.times().waiting, 0u);
}

TEST(ExpertCombineWithHost, DoesNotWaitForEver) {
    const MatmulKernels& kernels = *matmul_kernels(DataType::Q4_K);
    const ExpertCombineForTest test(DataType::Q4_K, kManyBlocks, {.missing = true});
    test.take_answer_back();
    kernels.expert_combine(test.down(), test.combine(), nullptr);
    check(cudaDeviceSynchronize(), "expert_combine");
    EXPECT_EQ(test.failed(), ExpertCombineForTest::epoch());
}

}  // namespace
}  // namespace coterie::cuda
