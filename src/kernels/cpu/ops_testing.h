#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/split_mix.h"
#include "kernels/cpu/instruction_sets.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/matmul/guarded_bytes.h"

/// What the tests of the ops share.
namespace coterie::cpu::testing {

inline constexpr std::uint64_t kSeed = 20261130;

enum class Values {
    Ordinary,  ///< uniform in -3..3
    Wide,      ///< any sign, exponent and mantissa
    Special,   ///< ordinary ones mixed with NaN, infinities, zeros, subnormals and the largest numbers
};

inline float special_value(SplitMix64& random) {
    using Limits = std::numeric_limits<float>;
    const float values[] = {Limits::quiet_NaN(),
                            Limits::infinity(),
                            0.0f,
                            Limits::denorm_min(),
                            1e-39f,
                            Limits::min(),
                            Limits::max(),
                            1e-35f,
                            88.8f,
                            87.4f,
                            1e30f,
                            20.0f,
                            1.0f,
                            7.0f,
                            65520.0f};
    const float value = values[random.next() % std::size(values)];
    return random.next() % 2 == 0 ? value : -value;
}

inline float random_value(Values kind, SplitMix64& random) {
    const float ordinary = random.next_float() * 6.0f - 3.0f;
    switch (kind) {
        case Values::Ordinary:
            return ordinary;
        case Values::Wide:
            return std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
        case Values::Special:
            return random.next() % 16 == 0 ? special_value(random) : ordinary;
    }
    return 0.0f;
}

inline std::vector<float> random_values(Values kind, std::int64_t n, SplitMix64& random) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float& value : values) value = random_value(kind, random);
    return values;
}

/// Floats that end at a page which may not be touched.
class GuardedFloats {
  public:
    explicit GuardedFloats(std::int64_t n)
        : bytes_(static_cast<std::size_t>(n) * sizeof(float), Guard::After),
          size_(static_cast<std::size_t>(n)) {}
    explicit GuardedFloats(const std::vector<float>& values)
        : GuardedFloats(static_cast<std::int64_t>(values.size())) {
        std::copy(values.begin(), values.end(), data());
    }
    float* data() { return reinterpret_cast<float*>(bytes_.data()); }
    std::vector<float> copy() { return {data(), data() + size_}; }

  private:
    GuardedBytes bytes_;
    std::size_t size_;
};

/// Bit for bit; any NaN equals any NaN.
inline ::testing::AssertionResult same_bits(std::span<const float> expected, std::span<const float> actual) {
    if (expected.size() != actual.size()) return ::testing::AssertionFailure() << "sizes differ";
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (std::isnan(expected[i]) && std::isnan(actual[i])) continue;
        if (std::bit_cast<std::uint32_t>(expected[i]) == std::bit_cast<std::uint32_t>(actual[i])) continue;
        return ::testing::AssertionFailure()
               << "value " << i << " of " << expected.size() << ": " << std::hexfloat << actual[i]
               << " instead of " << expected[i] << " (seed " << std::dec << kSeed << ")";
    }
    return ::testing::AssertionSuccess();
}

/// The tables of this machine other than the scalar one.
inline std::vector<const KernelTable*> vector_tables() {
    std::vector<const KernelTable*> tables;
    for (const InstructionSet set : kInstructionSets) {
        const KernelTable* table = kernels_for(set);
        if (table && set != InstructionSet::Scalar) tables.push_back(table);
    }
    return tables;
}

inline const KernelTable& scalar_table() { return *kernels_for(InstructionSet::Scalar); }

}  // namespace coterie::cpu::testing
