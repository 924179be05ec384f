#include "kernels/cuda/matmul.h"

#include <gtest/gtest.h>

#include "kernels/cuda/device_array_for_test.h"
#include "kernels/cuda/weights_for_test.h"
#include "kernels/reference/transcendental.h"

namespace coterie::cuda {
namespace {

using namespace testing;

class EveryType : public ::testing::TestWithParam<DataType> {
  protected:
    void SetUp() override {
        kernels_ = matmul_kernels(GetParam());
        ASSERT_NE(kernels_, nullptr);
        if (kernels_->prepare != nullptr) kernels_->prepare();
    }
    /// Whole blocks, an odd number of them among others.
    std::vector<std::int64_t> widths() const {
        const std::int64_t block = traits(GetParam()).block_values;
        if (block == 1) return {1, 31, 33, 768, 2000};
        return {block, 3 * block, 7 * block, 8 * block};
    }
    const MatmulKernels* kernels_ = nullptr;
};

TEST_P(EveryType, ProductsFollowTheLaw) {
    for (const std::int64_t columns : widths()) {
        for (const std::int64_t tokens : {1, 2, 4, 5, 9}) {
            const Weights first(GetParam(), columns, 1, 1);
            const Weights second(GetParam(), columns, 37, 2);
            const auto rows = random_rows(tokens, columns);
            const DeviceActivations x(rows, columns);
            const DeviceArray<std::byte> first_data(first.data);
            const DeviceArray<std::byte> second_data(second.data);
            const DeviceArray<float> bias(random_values_for_test(37, 3));
            const DeviceArray<float> out(static_cast<std::size_t>(tokens * 40));
            MatmulArgs args;
            args.jobs[0] = {first_data.get(), first.bytes, 1, 0.5f, nullptr, out.get(), 40};
            args.jobs[1] = {second_data.get(), second.bytes, 37, 1.0f, bias.get(), out.get() + 1, 40};
            args.count = 2;
            args.columns = static_cast<std::int32_t>(columns);
            args.tokens = static_cast<std::int32_t>(tokens);
            args.x = x.view();
            kernels_->matmul(args, nullptr);
            const std::vector<float> result = out.read();
            const std::vector<float> added = bias.read();
            for (std::int64_t t = 0; t < tokens; ++t) {
                const ActivationRow row = rows[static_cast<std::size_t>(t)].row();
                std::vector<float> expected{first.dot(0, row) * 0.5f};
                for (std::int64_t r = 0; r < 37; ++r)
                    expected.push_back(second.dot(r, row) * 1.0f + added[static_cast<std::size_t>(r)]);
                EXPECT_TRUE(all_same(std::span(result).subspan(static_cast<std::size_t>(t * 40)), expected))
                    << traits(GetParam()).name << " " << columns << " columns, token " << t << " of "
                    << tokens;
            }
        }
    }
}

TEST_P(EveryType, ManyRowsAndLongRowsFollowTheLaw) {
    const std::int64_t block = traits(GetParam()).block_values;
    struct Form {
        std::int64_t rows;
        std::int64_t columns;
    };
    for (const Form form :
         {Form{20001, std::max<std::int64_t>(block, 32)}, Form{5, (3300 / block + 1) * block}}) {
        const Weights weights(GetParam(), form.columns, form.rows, 4);
        const auto rows = random_rows(1, form.columns);
        const DeviceActivations x(rows, form.columns);
        const DeviceArray<std::byte> data(weights.data);
        const DeviceArray<float> out(static_cast<std::size_t>(form.rows));
        MatmulArgs args;
        args.jobs[0] = {data.get(), weights.bytes, static_cast<std::int32_t>(form.rows), 1.0f, nullptr,
                        out.get(),  form.rows};
        args.count = 1;
        args.columns = static_cast<std::int32_t>(form.columns);
        args.tokens = 1;
        args.x = x.view();
        kernels_->matmul(args, nullptr);
        std::vector<float> expected;
        for (std::int64_t r = 0; r < form.rows; ++r) expected.push_back(weights.dot(r, rows[0].row()));
        EXPECT_TRUE(all_same(out.read(), expected)) << form.rows << " rows of " << form.columns;
    }
}

TEST_P(EveryType, ExpertsFollowTheLawAndMissingOnesAreLeftOut) {
    constexpr std::int64_t kRows = 19;
    constexpr std::int64_t kPairs = 6;
    const std::int64_t columns = widths().back();
    const Weights gate(GetParam(), columns, kRows, 1);
    const Weights up(GetParam(), columns, kRows, 2);
    const auto rows = random_rows(kPairs / 2, columns);
    const DeviceActivations x(rows, columns);
    const std::size_t offset = (gate.data.size() + 15) / 16 * 16;
    std::vector<std::byte> slot(offset + up.data.size());
    std::copy(gate.data.begin(), gate.data.end(), slot.begin());
    std::copy(up.data.begin(), up.data.end(), slot.begin() + static_cast<std::ptrdiff_t>(offset));
    const DeviceArray<std::byte> slot_data(slot);
    const auto address = reinterpret_cast<std::uint64_t>(slot_data.get());
    const DeviceArray<std::uint64_t> slots(
        std::vector<std::uint64_t>{address, 0, address, address, 0, address});
    const DeviceArray<std::int32_t> experts(std::vector<std::int32_t>{0, 1, 2, 0, 1, 2});
    const std::vector<float> scales{1.0f, 0.5f, 3.0f};
    const std::vector<float> biases = random_values_for_test(3 * kRows, 5);
    const DeviceArray<float> device_scales(scales);
    const DeviceArray<float> device_biases(biases);
    const DeviceArray<float> out(2 * kPairs * 32);
    ExpertMatmulArgs args;
    args.slots = slots.get();
    args.experts = experts.get();
    args.offsets[1] = offset;
    args.scales[0] = device_scales.get();
    args.biases[1] = device_biases.get();
    args.matrices = 2;
    args.pairs = kPairs;
    args.pairs_per_input = 2;
    args.rows = kRows;
    args.columns = static_cast<std::int32_t>(columns);
    args.row_bytes = gate.bytes;
    args.x = x.view();
    args.out = out.get();
    args.out_stride = 32;
    kernels_->expert_matmul(args, nullptr);
    const std::vector<float> result = out.read();
    const std::vector<std::int32_t> chosen = experts.read();
    for (std::size_t p = 0; p < kPairs; ++p) {
        const ActivationRow row = rows[p / 2].row();
        const auto e = static_cast<std::size_t>(chosen[p]);
        std::vector<float> expected[2];
        for (std::int64_t r = 0; r < kRows; ++r) {
            expected[0].push_back(gate.dot(r, row) * scales[e]);
            expected[1].push_back(up.dot(r, row) + biases[e * kRows + static_cast<std::size_t>(r)]);
        }
        for (std::size_t m = 0; m < 2; ++m) {
            const std::size_t begin = (m * kPairs + p) * 32;
            if (p == 1 || p == 4) {
                EXPECT_TRUE(std::isnan(result[begin])) << "pair " << p << " was computed";
                continue;
            }
            EXPECT_TRUE(all_same(std::span(result).subspan(begin), expected[m]))
                << "pair " << p << " matrix " << m;
        }
    }
}

TEST_P(EveryType, GateAndUpInOneKernelFollowTheLaw) {
    if (kernels_->expert_gate_up == nullptr) GTEST_SKIP() << "computed by two products and a gate";
    constexpr std::int64_t kRows = 45;
    constexpr std::int64_t kPairs = 4;
    const std::int64_t columns = widths().back();
    const Weights gate(GetParam(), columns, kRows, 1);
    const Weights up(GetParam(), columns, kRows, 2);
    const auto rows = random_rows(kPairs / 2, columns);
    const DeviceActivations x(rows, columns);
    const std::size_t offset = (gate.data.size() + 15) / 16 * 16;
    std::vector<std::byte> slot(offset + up.data.size());
    std::copy(gate.data.begin(), gate.data.end(), slot.begin());
    std::copy(up.data.begin(), up.data.end(), slot.begin() + static_cast<std::ptrdiff_t>(offset));
    const DeviceArray<std::byte> slot_data(slot);
    const auto address = reinterpret_cast<std::uint64_t>(slot_data.get());
    const DeviceArray<std::uint64_t> slots(std::vector<std::uint64_t>{address, 0, address, address});
    const DeviceArray<std::int32_t> experts(std::vector<std::int32_t>{1, 0, 0, 1});
    const std::vector<float> scales{1.0f, 0.5f};
    const std::vector<float> biases = random_values_for_test(2 * kRows, 5);
    const DeviceArray<float> device_scales(scales);
    const DeviceArray<float> device_biases(biases);
    for (const Gate activation : {Gate::SwiGlu, Gate::SwiGluOai}) {
        const DeviceArray<float> out(kPairs * 64);
        ExpertGateArgs args;
        args.slots = slots.get();
        args.experts = experts.get();
        args.offsets[1] = offset;
        args.scales[1] = device_scales.get();
        args.biases[0] = device_biases.get();
        args.pairs = kPairs;
        args.pairs_per_input = 2;
        args.rows = kRows;
        args.columns = static_cast<std::int32_t>(columns);
        args.row_bytes = gate.bytes;
        args.activation = activation;
        args.x = x.view();
        args.out = out.get();
        args.out_stride = 64;
        kernels_->expert_gate_up(args, nullptr);
        const std::vector<float> result = out.read();
        const std::vector<std::int32_t> chosen = experts.read();
        for (const std::size_t p : {std::size_t{0}, std::size_t{2}, std::size_t{3}}) {
            const ActivationRow row = rows[p / 2].row();
            const auto e = static_cast<std::size_t>(chosen[p]);
            std::vector<float> expected;
            for (std::int64_t r = 0; r < kRows; ++r) {
                const float g = gate.dot(r, row) + biases[e * kRows + static_cast<std::size_t>(r)];
                const float u = up.dot(r, row) * scales[e];
                expected.push_back(activation == Gate::SwiGlu ? reference::swiglu(g, u)
                                                              : reference::swiglu_oai(g, u));
            }
            EXPECT_TRUE(all_same(std::span(result).subspan(p * 64), expected)) << "pair " << p;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Cuda, EveryType, ::testing::ValuesIn(types_with_products()),
                         [](const auto& type) { return std::string(traits(type.param).name); });

}  // namespace
}  // namespace coterie::cuda
