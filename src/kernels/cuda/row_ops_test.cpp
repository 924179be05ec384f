#include "kernels/cuda/row_ops.h"

#include <gtest/gtest.h>

#include "kernels/cpu/ops_testing.h"
#include "kernels/cuda/device_array_for_test.h"
#include "kernels/reference/reference.h"

namespace coterie::cuda {
namespace {

using namespace testing;
using cpu::testing::kSeed;
using cpu::testing::random_values;
using cpu::testing::Values;

constexpr std::int32_t kRows = 3;

/// Rows of random values, padded to whole groups.
struct HostRows {
    HostRows(std::int32_t wanted, Values values, std::uint64_t seed)
        : width(wanted), stride((wanted + 31) / 32 * 32) {
        SplitMix64 random(seed);
        data.assign(static_cast<std::size_t>(kRows * stride), 0.0f);
        for (std::int32_t t = 0; t < kRows; ++t) {
            const std::vector<float> row = random_values(values, width, random);
            std::copy(row.begin(), row.end(), this->row(t));
        }
    }
    float* row(std::int32_t t) { return data.data() + t * stride; }
    Rows on(const DeviceArray<float>& array) const { return {array.get(), stride, kRows, width}; }

    std::int32_t width;
    std::int64_t stride;
    std::vector<float> data;
};

class RowOps : public ::testing::TestWithParam<std::tuple<int, Values>> {
  protected:
    std::int32_t width() const { return std::get<0>(GetParam()); }
    Values values() const { return std::get<1>(GetParam()); }
};

TEST_P(RowOps, NormAddsNormalisesAndQuantises) {
    HostRows x(width(), values(), kSeed);
    HostRows y(width(), values(), kSeed + 1);
    HostRows weight(width(), Values::Ordinary, kSeed + 2);
    const DeviceArray<float> device_x(x.data);
    const DeviceArray<float> device_y(y.data);
    const DeviceArray<float> device_weight(weight.data);
    const DeviceArray<float> out(x.data.size());
    const DeviceQuants quants(kRows, width());
    rms_norm({.x = x.on(device_x),
              .y = device_y.get(),
              .weight = device_weight.get(),
              .run = width(),
              .epsilon = 1e-6f,
              .out = out.get(),
              .quantised = quants.view},
             nullptr);
    const std::vector<float> result = out.read();
    const std::vector<float> sums = device_x.read();
    for (std::int32_t t = 0; t < kRows; ++t) {
        std::vector<float> sum(static_cast<std::size_t>(width()));
        std::vector<float> expected(sum.size());
        reference::add(x.row(t), y.row(t), width(), sum.data());
        reference::rms_norm(sum.data(), weight.row(0), width(), 1e-6f, expected.data());
        EXPECT_TRUE(all_same(std::span(sums).subspan(static_cast<std::size_t>(t * x.stride)), sum));
        EXPECT_TRUE(all_same(std::span(result).subspan(static_cast<std::size_t>(t * x.stride)), expected));
        quants.expect_row(t, expected.data(), width());
    }
}

TEST_P(RowOps, GatesFollowTheLaw) {
    for (const Gate activation : {Gate::SwiGlu, Gate::SwiGluOai}) {
        HostRows x(width(), values(), kSeed);
        HostRows y(width(), values(), kSeed + 1);
        const DeviceArray<float> device_x(x.data);
        const DeviceArray<float> device_y(y.data);
        const DeviceArray<std::uint64_t> used(std::vector<std::uint64_t>{1, 0, 1});
        const DeviceQuants quants(kRows, width());
        gate({.gate = x.on(device_x),
              .up = device_y.get(),
              .activation = activation,
              .used = used.get(),
              .quantised = quants.view},
             nullptr);
        const std::vector<float> result = device_x.read();
        const auto law =
            activation == Gate::SwiGlu
                ? static_cast<void (*)(const float*, const float*, std::int64_t, float*)>(reference::swiglu)
                : reference::swiglu_oai;
        for (const std::int32_t t : {0, 2}) {
            std::vector<float> expected(static_cast<std::size_t>(width()));
            law(x.row(t), y.row(t), width(), expected.data());
            EXPECT_TRUE(
                all_same(std::span(result).subspan(static_cast<std::size_t>(t * x.stride)), expected));
            quants.expect_row(t, expected.data(), width());
        }
        EXPECT_TRUE(all_same(std::span(result).subspan(static_cast<std::size_t>(x.stride)),
                             std::span(x.row(1), static_cast<std::size_t>(width()))));
    }
}

TEST_P(RowOps, AddAndQuantiseFollowTheLaw) {
    HostRows x(width(), values(), kSeed);
    HostRows y(width(), values(), kSeed + 1);
    const DeviceArray<float> device_x(x.data);
    const DeviceArray<float> device_y(y.data);
    const DeviceQuants quants(kRows, width());
    add(x.on(device_x), device_y.get(), nullptr);
    quantise(x.on(device_x), quants.view, nullptr);
    for (std::int32_t t = 0; t < kRows; ++t) {
        std::vector<float> expected(static_cast<std::size_t>(width()));
        reference::add(x.row(t), y.row(t), width(), expected.data());
        quants.expect_row(t, expected.data(), width());
    }
}

INSTANTIATE_TEST_SUITE_P(
    Widths, RowOps,
    ::testing::Combine(::testing::Values(1, 31, 32, 33, 768, 2048, 2880, 7168, kLongestNorm),
                       ::testing::Values(Values::Ordinary, Values::Wide, Values::Special)));

TEST(Norm, OfHeads) {
    constexpr std::int32_t kRun = 96;
    HostRows x(5 * kRun, Values::Ordinary, kSeed);
    HostRows weight(kRun, Values::Ordinary, kSeed + 2);
    const DeviceArray<float> device_x(x.data);
    const DeviceArray<float> device_weight(weight.data);
    rms_norm({.x = x.on(device_x),
              .y = nullptr,
              .weight = device_weight.get(),
              .run = kRun,
              .epsilon = 1e-5f,
              .out = device_x.get(),
              .quantised = {}},
             nullptr);
    const std::vector<float> result = device_x.read();
    for (std::int32_t t = 0; t < kRows; ++t) {
        for (int h = 0; h < 5; ++h) {
            std::vector<float> expected(kRun);
            reference::rms_norm(x.row(t) + h * kRun, weight.row(0), kRun, 1e-5f, expected.data());
            EXPECT_TRUE(all_same(std::span(result).subspan(static_cast<std::size_t>(t * x.stride + h * kRun)),
                                 expected));
        }
    }
}

TEST(Rotation, FollowsTheLaw) {
    constexpr std::int32_t kRun = 80;
    constexpr std::int32_t kPairs = 32;
    for (const RotationStyle style : {RotationStyle::Adjacent, RotationStyle::Halves}) {
        HostRows x(3 * kRun, Values::Wide, kSeed);
        HostRows angles(2 * kPairs, Values::Ordinary, kSeed + 1);
        std::vector<float> cosines;
        std::vector<float> sines;
        for (std::int32_t t = 0; t < kRows; ++t) {
            cosines.insert(cosines.end(), angles.row(t), angles.row(t) + kPairs);
            sines.insert(sines.end(), angles.row(t) + kPairs, angles.row(t) + 2 * kPairs);
        }
        const DeviceArray<float> device_x(x.data);
        const DeviceArray<float> device_cosines(cosines);
        const DeviceArray<float> device_sines(sines);
        rotate({.x = x.on(device_x),
                .run = kRun,
                .offset = 8,
                .pairs = kPairs,
                .style = style,
                .cosines = device_cosines.get(),
                .sines = device_sines.get()},
               nullptr);
        const auto law = style == RotationStyle::Adjacent ? reference::rope_adjacent : reference::rope_halves;
        for (std::int32_t t = 0; t < kRows; ++t) {
            for (int h = 0; h < 3; ++h)
                law(x.row(t) + h * kRun + 8, angles.row(t), angles.row(t) + kPairs, kPairs);
        }
        EXPECT_TRUE(all_same(device_x.read(), x.data));
    }
}

}  // namespace
}  // namespace coterie::cuda
