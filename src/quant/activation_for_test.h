#pragma once

#include <vector>

#include "base/aligned_buffer.h"
#include "base/split_mix.h"
#include "quant/activation.h"

namespace coterie {

/// An owned activation row in both forms, for tests.
class ActivationForTest {
  public:
    explicit ActivationForTest(const std::vector<float>& x)
        : columns_(static_cast<std::int64_t>(x.size())),
          values_(padded()),
          quants_(padded()),
          scales_(groups()),
          scaled_sums_(groups()),
          half_sums_(2 * groups()) {
        for (std::size_t i = 0; i < x.size(); ++i) values_[i] = x[i];
        quantise_activation(values_.data(), columns_,
                            {quants_.data(), scales_.data(), scaled_sums_.data(), half_sums_.data()});
    }

    /// The quantised form given directly: `quants` of whole groups and one scale for each.
    ActivationForTest(const std::vector<int>& quants, const std::vector<float>& scales)
        : ActivationForTest(std::vector<float>(quants.size())) {
        for (std::size_t i = 0; i < quants.size(); ++i) {
            quants_[i] = static_cast<std::int8_t>(quants[i]);
            half_sums_[i / 16] = static_cast<std::int16_t>(half_sums_[i / 16] + quants[i]);
        }
        for (std::size_t g = 0; g < scales.size(); ++g) {
            scales_[g] = scales[g];
            scaled_sums_[g] = scales[g] * static_cast<float>(half_sums_[2 * g] + half_sums_[2 * g + 1]);
        }
    }

    ActivationRow row() const {
        return {columns_,       values_.data(),      quants_.data(),
                scales_.data(), scaled_sums_.data(), half_sums_.data()};
    }

    /// Value i of the quantised form.
    double dequantised(std::size_t i) const { return static_cast<double>(scales_[i / 32]) * quants_[i]; }

  private:
    std::size_t groups() const { return static_cast<std::size_t>(activation_groups(columns_)); }
    std::size_t padded() const { return groups() * static_cast<std::size_t>(kGroupValues); }

    std::int64_t columns_;
    AlignedBuffer<float> values_;
    AlignedBuffer<std::int8_t> quants_;
    AlignedBuffer<float> scales_;
    AlignedBuffer<float> scaled_sums_;
    AlignedBuffer<std::int16_t> half_sums_;
};

/// Uniform in (-1, 1), every seventh group ten times larger.
inline std::vector<float> random_values_for_test(std::size_t count, std::uint64_t seed) {
    SplitMix64 random(seed);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = (2.0f * random.next_float() - 1.0f) * (i / 32 % 7 == 3 ? 10.0f : 1.0f);
    }
    return values;
}

}  // namespace coterie
