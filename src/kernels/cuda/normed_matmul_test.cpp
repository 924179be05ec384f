#include <gtest/gtest.h>

#include "kernels/cuda/matmul.h"
#include "kernels/cuda/normed_input_for_test.h"
#include "kernels/cuda/weights_for_test.h"

namespace coterie::cuda {
namespace {

using namespace testing;
using cpu::testing::kSeed;
using cpu::testing::Values;

/// Two products of `first` and one of `second` of one normed row.
void expect_law(NormedMatmul kernel, DataType first, DataType second, std::int32_t width, Values values,
                bool adds) {
    ASSERT_TRUE(takes_normed(width));
    const NormedInputForTest input(1, width, values, adds, kSeed);
    const ActivationForTest row(input.normed(0));
    const Weights weights[] = {{first, width, 37, 1}, {first, width, 1, 2}, {second, width, 70, 3}};
    const DeviceArray<std::byte> data[] = {DeviceArray<std::byte>(weights[0].data),
                                           DeviceArray<std::byte>(weights[1].data),
                                           DeviceArray<std::byte>(weights[2].data)};
    const std::vector<float> bias = random_values_for_test(70, 3);
    const DeviceArray<float> device_bias(bias);
    const DeviceArray<float> out(37 + 1 + 70);
    MatmulArgs args;
    args.jobs[0] = {data[0].get(), weights[0].bytes, 37, 0.5f, nullptr, out.get(), 37};
    args.jobs[1] = {data[1].get(), weights[1].bytes, 1, 1.0f, nullptr, out.get() + 37, 1};
    args.jobs[2] = {data[2].get(), weights[2].bytes, 70, 1.0f, device_bias.get(), out.get() + 38, 70};
    args.count = 3;
    args.columns = width;
    args.tokens = 1;
    kernel(args, input.view(), 2, nullptr);
    std::vector<float> expected;
    for (std::int64_t r = 0; r < 37; ++r) expected.push_back(weights[0].dot(r, row.row()) * 0.5f);
    expected.push_back(weights[1].dot(0, row.row()));
    for (std::size_t r = 0; r < 70; ++r)
        expected.push_back(weights[2].dot(static_cast<std::int64_t>(r), row.row()) + bias[r]);
    EXPECT_TRUE(all_same(out.read(), expected))
        << traits(first).name << " " << traits(second).name << " " << width << " columns";
    input.expect_stored();
}

class NormedProducts : public ::testing::TestWithParam<DataType> {};

TEST_P(NormedProducts, FollowTheLaw) {
    const DataType type = GetParam();
    const MatmulKernels& kernels = *matmul_kernels(type);
    if (kernels.normed_matmul == nullptr) GTEST_SKIP() << "normalised by a kernel of their own";
    if (kernels.prepare != nullptr) kernels.prepare();
    const auto block = static_cast<std::int32_t>(traits(type).block_values);
    for (const std::int32_t width : {block, 3 * block, 2048 / block * block, 5120 / block * block}) {
        expect_law(kernels.normed_matmul, type, type, width, Values::Ordinary, true);
        expect_law(kernels.normed_matmul, type, type, width, Values::Special, false);
    }
}

INSTANTIATE_TEST_SUITE_P(Cuda, NormedProducts, ::testing::ValuesIn(types_with_products()),
                         [](const auto& type) { return std::string(traits(type.param).name); });

TEST(NormedProductsOfTwoTypes, FollowTheLaw) {
    for (const DataType first : {DataType::Q4_K, DataType::Q5_K}) {
        const NormedMatmul kernel = normed_matmul(first, DataType::Q6_K);
        ASSERT_NE(kernel, nullptr);
        for (const std::int32_t width : {256, 768, 2048, 5120})
            expect_law(kernel, first, DataType::Q6_K, width, Values::Ordinary, true);
    }
}

TEST(NormedProductsOfTwoTypes, AreThoseThatModelsHave) {
    EXPECT_EQ(normed_matmul(DataType::Q4_K, DataType::Q4_K), matmul_kernels(DataType::Q4_K)->normed_matmul);
    EXPECT_EQ(normed_matmul(DataType::Q6_K, DataType::Q4_K), nullptr);
    EXPECT_EQ(normed_matmul(DataType::F32, DataType::Q6_K), nullptr);
    EXPECT_EQ(normed_matmul(DataType::F32, DataType::F32), nullptr);
}

}  // namespace
}  // namespace coterie::cuda
