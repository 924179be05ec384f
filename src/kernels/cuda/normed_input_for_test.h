#pragma once

#include <optional>

#include "kernels/cpu/ops_testing.h"
#include "kernels/cuda/device_array_for_test.h"
#include "kernels/cuda/row_ops.h"
#include "kernels/reference/reference.h"

namespace coterie::cuda::testing {

/// Rows that a kernel is to normalise, and what the law makes of them.
class NormedInputForTest {
  public:
    NormedInputForTest(std::int32_t tokens, std::int32_t width, cpu::testing::Values values, bool adds,
                       std::uint64_t seed)
        : tokens_(tokens),
          width_(width),
          stride_((width + 31) / 32 * 32),
          adds_(adds),
          quants_(tokens, width) {
        SplitMix64 random(seed);
        weight_ = cpu::testing::random_values(cpu::testing::Values::Ordinary, width, random);
        x_ = cpu::testing::random_values(values, tokens * stride_, random);
        y_ = cpu::testing::random_values(values, tokens * stride_, random);
        device_x_.emplace(x_);
        device_y_.emplace(y_);
        device_weight_.emplace(weight_);
        sum_.emplace(x_.size());
        out_.emplace(x_.size());
    }

    NormedInput view() const {
        NormedInput input;
        input.x = device_x_->get();
        input.y = adds_ ? device_y_->get() : nullptr;
        input.sum = adds_ ? sum_->get() : nullptr;
        input.stride = stride_;
        input.weight = device_weight_->get();
        input.width = width_;
        input.epsilon = kEpsilon;
        input.out = out_->get();
        input.quantised = quants_.view;
        return input;
    }

    std::vector<float> sum(std::int32_t t) const {
        std::vector<float> sum(static_cast<std::size_t>(width_));
        const float* x = x_.data() + t * stride_;
        if (!adds_) return {x, x + width_};
        reference::add(x, y_.data() + t * stride_, width_, sum.data());
        return sum;
    }
    std::vector<float> normed(std::int32_t t) const {
        std::vector<float> out(static_cast<std::size_t>(width_));
        reference::rms_norm(sum(t).data(), weight_.data(), width_, kEpsilon, out.data());
        return out;
    }

    /// Whether the kernel stored all of it, and left x alone.
    void expect_stored() const {
        EXPECT_TRUE(all_same(device_x_->read(), x_));
        const std::vector<float> sums = sum_->read();
        const std::vector<float> out = out_->read();
        for (std::int32_t t = 0; t < tokens_; ++t) {
            const auto begin = static_cast<std::size_t>(t * stride_);
            if (adds_) {
                EXPECT_TRUE(all_same(std::span(sums).subspan(begin), sum(t))) << "token " << t;
            }
            EXPECT_TRUE(all_same(std::span(out).subspan(begin), normed(t))) << "token " << t;
            quants_.expect_row(t, normed(t).data(), width_);
        }
    }

  private:
    static constexpr float kEpsilon = 1e-6f;

    std::int32_t tokens_;
    std::int32_t width_;
    std::int64_t stride_;
    bool adds_;
    DeviceQuants quants_;
    std::vector<float> weight_;
    std::vector<float> x_;
    std::vector<float> y_;
    std::optional<DeviceArray<float>> device_x_;
    std::optional<DeviceArray<float>> device_y_;
    std::optional<DeviceArray<float>> device_weight_;
    std::optional<DeviceArray<float>> sum_;
    std::optional<DeviceArray<float>> out_;
};

}  // namespace coterie::cuda::testing
