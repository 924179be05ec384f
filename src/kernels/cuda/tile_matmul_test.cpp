#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <optional>

#include "kernels/cuda/device_array_for_test.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/weights_for_test.h"

namespace coterie::cuda {
namespace {

using namespace testing;

class ManyTokens : public ::testing::TestWithParam<DataType> {
  protected:
    void SetUp() override {
        kernels_ = matmul_kernels(GetParam());
        ASSERT_NE(kernels_, nullptr);
        if (kernels_->prepare != nullptr) kernels_->prepare();
    }
    std::int64_t block() const { return traits(GetParam()).block_values; }
    /// Rows whose groups fill no slab, or the last one by a part; long rows.
    std::vector<std::int64_t> widths() const {
        if (block() == 1) return {1, 33, 100, 2048};
        return {block(), 3 * block(), 7 * block(), 2048};
    }
    const MatmulKernels* kernels_ = nullptr;
};

/// out[token][row] of one job, checked against the scalar law.
void expect_law(const Weights& weights, const std::vector<ActivationForTest>& rows, float scale,
                const std::vector<float>& bias, std::span<const float> result, std::size_t stride) {
    for (std::size_t t = 0; t < rows.size(); ++t) {
        const ActivationRow row = rows[t].row();
        std::vector<float> expected;
        for (std::int64_t r = 0; r < weights.rows; ++r) {
            expected.push_back(weights.dot(r, row) * scale);
            if (!bias.empty()) expected.back() += bias[static_cast<std::size_t>(r)];
        }
        ASSERT_TRUE(all_same(result.subspan(t * stride), expected))
            << weights.traits_.name << ", " << weights.rows << " rows of " << weights.columns << ", token "
            << t << " of " << rows.size();
    }
}

TEST_P(ManyTokens, ProductsFollowTheLaw) {
    const DeviceArray<float> bias(random_values_for_test(37, 3));
    for (const std::int64_t columns : widths()) {
        const Weights jobs[3] = {
            {GetParam(), columns, 1, 1}, {GetParam(), columns, 37, 2}, {GetParam(), columns, 130, 3}};
        const DeviceArray<std::byte> data[3] = {DeviceArray<std::byte>(jobs[0].data),
                                                DeviceArray<std::byte>(jobs[1].data),
                                                DeviceArray<std::byte>(jobs[2].data)};
        for (const std::int64_t tokens : {16, 17, 64, 65, 200}) {
            constexpr std::int64_t kStride = 172;  // the three outputs side by side, and four values between
            const auto rows = random_rows(tokens, columns);
            const DeviceActivations x(rows, columns);
            const DeviceArray<float> out(static_cast<std::size_t>(tokens * kStride));
            MatmulArgs args;
            args.jobs[0] = {data[0].get(), jobs[0].bytes, 1, 0.5f, nullptr, out.get(), kStride};
            args.jobs[1] = {data[1].get(), jobs[1].bytes, 37, 1.0f, bias.get(), out.get() + 1, kStride};
            args.jobs[2] = {data[2].get(), jobs[2].bytes, 130, 3.0f, nullptr, out.get() + 38, kStride};
            args.count = 3;
            args.columns = static_cast<std::int32_t>(columns);
            args.tokens = static_cast<std::int32_t>(tokens);
            args.x = x.view();
            kernels_->matmul(args, nullptr);
            const std::vector<float> result = out.read();
            const std::span<const float> all = result;
            expect_law(jobs[0], rows, 0.5f, {}, all, kStride);
            expect_law(jobs[1], rows, 1.0f, bias.read(), all.subspan(1), kStride);
            expect_law(jobs[2], rows, 3.0f, {}, all.subspan(38), kStride);
            for (std::size_t t = 0; t < rows.size(); ++t) {
                for (std::size_t i = 168; i < kStride; ++i)
                    ASSERT_TRUE(std::isnan(all[t * kStride + i])) << "written past the last row";
            }
        }
    }
}

TEST_P(ManyTokens, RowsThatAreZeroInfiniteOrNanFollowTheLaw) {
    const std::int64_t columns = std::max<std::int64_t>(2 * block(), 64);
    const Weights weights(GetParam(), columns, 40, 5);
    std::vector<ActivationForTest> rows;
    for (std::uint64_t t = 0; t < 20; ++t) {
        auto values = random_values_for_test(static_cast<std::size_t>(columns), 40 + t);
        if (t % 5 == 1) std::fill(values.begin(), values.end(), 0.0f);
        if (t % 5 == 2) values[33] = std::numeric_limits<float>::infinity();
        if (t % 5 == 3) values[0] = std::numeric_limits<float>::quiet_NaN();
        if (t % 5 == 4)
            for (float& value : values) value *= 1e-33f;
        rows.emplace_back(values);
    }
    const DeviceActivations x(rows, columns);
    const DeviceArray<std::byte> data(weights.data);
    const DeviceArray<float> out(20 * 40);
    MatmulArgs args;
    args.jobs[0] = {data.get(), weights.bytes, 40, 1.0f, nullptr, out.get(), 40};
    args.count = 1;
    args.columns = static_cast<std::int32_t>(columns);
    args.tokens = 20;
    args.x = x.view();
    kernels_->matmul(args, nullptr);
    const std::vector<float> result = out.read();
    expect_law(weights, rows, 1.0f, {}, result, 40);
}

/// Experts on the device, and which one each of the pairs wants.
struct Routed {
    static constexpr std::int32_t kExperts = 7;
    static constexpr std::int32_t kUsed = 2;
    static constexpr std::int64_t kRows = 130;

    Routed(DataType type, std::int64_t columns) {
        for (std::uint64_t e = 0; e < kExperts; ++e) {
            gates.emplace_back(type, columns, kRows, 10 + e);
            ups.emplace_back(type, columns, kRows, 20 + e);
        }
        offset = (gates[0].data.size() + 15) / 16 * 16;
        slot_bytes = (offset + ups[0].data.size() + 15) / 16 * 16;
        std::vector<std::byte> bytes(kExperts * slot_bytes);
        for (std::size_t e = 0; e < kExperts; ++e) {
            const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(e * slot_bytes);
            std::copy(gates[e].data.begin(), gates[e].data.end(), at);
            std::copy(ups[e].data.begin(), ups[e].data.end(), at + static_cast<std::ptrdiff_t>(offset));
        }
        memory.emplace(bytes);
    }
    /// Expert 3 takes most pairs, expert 5 is not on the device, expert 6 is never chosen.
    static std::vector<std::int32_t> choice(std::size_t pairs) {
        std::vector<std::int32_t> experts(pairs);
        for (std::size_t p = 0; p < pairs; ++p)
            experts[p] = p % 4 != 0 ? 3 : static_cast<std::int32_t>(p / 4 % 6);
        return experts;
    }
    std::uint64_t slot(std::int32_t expert) const {
        if (expert == 5) return 0;
        return reinterpret_cast<std::uint64_t>(memory->get()) +
               static_cast<std::uint64_t>(expert) * slot_bytes;
    }

    std::vector<Weights> gates;
    std::vector<Weights> ups;
    std::size_t offset = 0;
    std::size_t slot_bytes = 0;
    std::optional<DeviceArray<std::byte>> memory;
};

void expect_experts(const MatmulKernels& kernels, const Routed& routed, std::int64_t columns,
                    std::int64_t tokens, std::int32_t tile_pairs) {
    const auto pairs = static_cast<std::size_t>(tokens * Routed::kUsed);
    const std::vector<std::int32_t> chosen = Routed::choice(pairs);
    std::vector<std::uint64_t> addresses;
    for (const std::int32_t e : chosen) addresses.push_back(routed.slot(e));
    const DeviceArray<std::int32_t> experts(chosen);
    const DeviceArray<std::uint64_t> slots(addresses);
    const std::vector<float> scales{1.0f, 0.5f, 3.0f, 1.5f, 0.1f, 7.0f, 2.0f};
    const std::vector<float> biases = random_values_for_test(Routed::kExperts * Routed::kRows, 5);
    const DeviceArray<float> device_scales(scales);
    const DeviceArray<float> device_biases(biases);
    const auto rows = random_rows(tokens, columns);
    const DeviceActivations x(rows, columns);
    constexpr std::size_t kStride = 136;
    const DeviceArray<float> out(2 * pairs * kStride);
    const SortedPairsForTest sorted(slots.get(), experts.get(), static_cast<std::int32_t>(pairs),
                                    Routed::kExperts, tile_pairs);
    ExpertMatmulArgs args;
    args.slots = slots.get();
    args.experts = experts.get();
    args.offsets[1] = routed.offset;
    args.scales[0] = device_scales.get();
    args.biases[1] = device_biases.get();
    args.matrices = 2;
    args.pairs = static_cast<std::int32_t>(pairs);
    args.pairs_per_input = Routed::kUsed;
    args.rows = Routed::kRows;
    args.columns = static_cast<std::int32_t>(columns);
    args.row_bytes = routed.gates[0].bytes;
    args.x = x.view();
    args.out = out.get();
    args.out_stride = kStride;
    args.sorted = sorted.view();
    kernels.expert_matmul(args, nullptr);

    const std::vector<float> result = out.read();
    const std::span<const float> all = result;
    for (std::size_t p = 0; p < pairs; ++p) {
        const ActivationRow row = rows[p / Routed::kUsed].row();
        const auto e = static_cast<std::size_t>(chosen[p]);
        std::vector<float> expected[2];
        for (std::int64_t r = 0; r < Routed::kRows; ++r) {
            expected[0].push_back(routed.gates[e].dot(r, row) * scales[e]);
            expected[1].push_back(routed.ups[e].dot(r, row) +
                                  biases[e * Routed::kRows + static_cast<std::size_t>(r)]);
        }
        for (std::size_t m = 0; m < 2; ++m) {
            const auto values = all.subspan((m * pairs + p) * kStride, kStride);
            if (e == 5) {
                ASSERT_TRUE(std::all_of(values.begin(), values.end(), [](float v) { return std::isnan(v); }))
                    << "pair " << p << " was computed";
                continue;
            }
            ASSERT_TRUE(all_same(values, expected[m])) << tokens << " tokens of " << columns << ", pair " << p
                                                       << " matrix " << m << ", tiles of " << tile_pairs;
            ASSERT_TRUE(std::isnan(values[Routed::kRows])) << "written past the last row";
        }
    }
}

TEST_P(ManyTokens, SortedExpertsFollowTheLaw) {
    for (const std::int64_t columns : {3 * block(), std::max<std::int64_t>(block(), 768)}) {
        const Routed routed(GetParam(), columns);
        for (const std::int64_t tokens : {1, 40, 100}) {
            for (const std::int32_t tile_pairs : {32, 64})
                expect_experts(*kernels_, routed, columns, tokens, tile_pairs);
        }
    }
}

/// A grid's second dimension ends at 65,535.
TEST_P(ManyTokens, ExpertsTakeMorePairsThanAGridHasRows) {
    constexpr std::int32_t kPairs = 70001;
    const std::int64_t columns = block() == 1 ? 32 : block();
    const Routed routed(GetParam(), columns);
    const std::vector<std::int32_t> chosen = Routed::choice(kPairs);
    std::vector<std::uint64_t> addresses;
    for (const std::int32_t e : chosen) addresses.push_back(routed.slot(e));
    const DeviceArray<std::int32_t> experts(chosen);
    const DeviceArray<std::uint64_t> slots(addresses);
    const auto rows = random_rows(1, columns);
    const DeviceActivations x(rows, columns);
    const DeviceArray<float> out(kPairs * Routed::kRows);
    const SortedPairsForTest sorted(slots.get(), experts.get(), kPairs, Routed::kExperts, SortedPairs::kWide);
    ExpertMatmulArgs args;
    args.slots = slots.get();
    args.experts = experts.get();
    args.pairs = kPairs;
    args.pairs_per_input = kPairs;
    args.rows = Routed::kRows;
    args.columns = static_cast<std::int32_t>(columns);
    args.row_bytes = routed.gates[0].bytes;
    args.x = x.view();
    args.out = out.get();
    args.out_stride = Routed::kRows;
    args.sorted = sorted.view();
    kernels_->expert_matmul(args, nullptr);

    std::vector<std::vector<float>> expected(Routed::kExperts);
    for (std::size_t e = 0; e < expected.size(); ++e) {
        for (std::int64_t r = 0; r < Routed::kRows; ++r)
            expected[e].push_back(routed.gates[e].dot(r, rows[0].row()));
    }
    const std::vector<float> result = out.read();
    for (std::size_t p = 0; p < kPairs; ++p) {
        const auto values = std::span(result).subspan(p * Routed::kRows, Routed::kRows);
        if (chosen[p] == 5) {
            ASSERT_TRUE(std::isnan(values[0])) << "pair " << p << " was computed";
        } else {
            ASSERT_TRUE(all_same(values, expected[static_cast<std::size_t>(chosen[p])])) << "pair " << p;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Cuda, ManyTokens, ::testing::ValuesIn(types_with_products()),
                         [](const auto& type) { return std::string(traits(type.param).name); });

}  // namespace
}  // namespace coterie::cuda
