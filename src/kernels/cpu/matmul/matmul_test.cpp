#include "kernels/cpu/matmul/matmul.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/split_mix.h"
#include "kernels/cpu/instruction_sets.h"
#include "kernels/cpu/matmul/guarded_bytes.h"
#include "quant/random_blocks.h"

namespace coterie::cpu {
namespace {

constexpr std::uint64_t kSeed = 20261130;
constexpr std::int64_t kMostRows = 33;
constexpr std::int64_t kMostTokens = 130;

/// What the weights of a test hold.
enum class Weights {
    Ordinary,    ///< valid scales, random codes
    AnyBits,     ///< random bytes: infinite, NaN, subnormal and negative scales
    Zeros,       ///< all bits 0: zero scales
    Ones,        ///< all bits 1: the largest codes, NaN scales
    LargeCodes,  ///< valid scales in the first bytes, all codes at an extreme
};

void fill_weights(Weights kind, const DataTypeTraits& type, SplitMix64& random, std::span<std::byte> out) {
    const std::int64_t blocks = static_cast<std::int64_t>(out.size()) / type.block_bytes;
    switch (kind) {
        case Weights::Ordinary:
            return RandomBlocks(type.type, 0.05f).fill(random, blocks, out.data());
        case Weights::LargeCodes:
            RandomBlocks(type.type, 0.05f).fill(random, blocks, out.data());
            for (std::byte& byte : out) {
                if (random.next() % 4 == 0) byte = random.next() % 2 == 0 ? std::byte{0xff} : std::byte{0x80};
            }
            return;
        case Weights::AnyBits:
            for (std::byte& byte : out) byte = static_cast<std::byte>(random.next());
            return;
        case Weights::Zeros:
            return static_cast<void>(std::memset(out.data(), 0, out.size()));
        case Weights::Ones:
            return static_cast<void>(std::memset(out.data(), 0xff, out.size()));
    }
}

/// Tokens of every kind, in both forms, in memory that ends with its last group.
class Tokens {
  public:
    Tokens(std::int64_t columns, SplitMix64& random) : groups_(activation_groups(columns)) {
        for (std::int64_t t = 0; t < kMostTokens; ++t) add(columns, t, random);
    }

    const ActivationRow* rows() const { return rows_.data(); }

  private:
    template <typename T>
    T* allocate(std::int64_t count) {
        const std::size_t bytes = (static_cast<std::size_t>(count) * sizeof(T) + 31) / 32 * 32;
        memory_.push_back(std::make_unique<GuardedBytes>(bytes, Guard::After));
        return reinterpret_cast<T*>(memory_.back()->data());
    }

    static float value(std::int64_t token, std::int64_t i, SplitMix64& random) {
        const float uniform = 2.0f * random.next_float() - 1.0f;
        switch (token % 7) {
            case 1:
                return i % 64 < 32 ? 0.0f : uniform;
            case 2:
                return uniform < 0 ? -6e4f : 6e4f;  // every quant is -127 or 127
            case 3:
                return i == 5 ? NAN : (i == 70 ? INFINITY : uniform);
            case 4:
                return 3.0f;
            case 5:
                return uniform * 1e-36f;
            default:
                return uniform;
        }
    }

    void add(std::int64_t columns, std::int64_t token, SplitMix64& random) {
        float* values = allocate<float>(groups_ * kGroupValues);
        for (std::int64_t i = 0; i < groups_ * kGroupValues; ++i) {
            values[i] = i < columns ? value(token, i, random) : 0.0f;
        }
        const QuantisedActivation out{allocate<std::int8_t>(groups_ * kGroupValues), allocate<float>(groups_),
                                      allocate<float>(groups_), allocate<std::int16_t>(2 * groups_)};
        quantise_activation(values, columns, out);
        rows_.push_back({columns, values, out.quants, out.scales, out.scaled_sums, out.half_sums});
    }

    std::int64_t groups_;
    std::vector<std::unique_ptr<GuardedBytes>> memory_;
    std::vector<ActivationRow> rows_;
};

bool same(float a, float b) {
    return (std::isnan(a) && std::isnan(b)) ||
           std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// A weight matrix of kMostRows rows and its products with all tokens by the law.
struct Case {
    Case(const DataTypeTraits& data_type, std::int64_t column_count, Weights kind, Guard guard,
         SplitMix64& random)
        : type(data_type),
          columns(column_count),
          row_size(*row_bytes(type.type, columns)),
          weights(static_cast<std::size_t>(kMostRows * row_size), guard),
          tokens(columns, random) {
        fill_weights(kind, type, random, weights.span());
        for (std::int64_t t = 0; t < kMostTokens; ++t) {
            for (std::int64_t r = 0; r < kMostRows; ++r) {
                expected.push_back(type.dot(weights.data() + r * row_size, tokens.rows()[t]));
            }
        }
    }

    /// Compares rows [first, first + rows) and tokens [0, count) with the law.
    void check(MatmulFunction matmul, std::int64_t first, std::int64_t rows, std::int64_t count) {
        const std::int64_t stride = rows + 3;
        std::vector<float> out(static_cast<std::size_t>(stride * count), -77.0f);
        matmul({weights.data() + first * row_size, row_size, columns, rows, tokens.rows(), count, out.data(),
                stride});
        for (std::int64_t t = 0; t < count; ++t) {
            for (std::int64_t r = 0; r < stride; ++r) {
                const float result = out[static_cast<std::size_t>(t * stride + r)];
                const float wanted =
                    r < rows ? expected[static_cast<std::size_t>(t * kMostRows + first + r)] : -77.0f;
                ASSERT_TRUE(same(result, wanted))
                    << type.name << " columns " << columns << " rows " << rows << " from " << first
                    << " tokens " << count << ": row " << r << " token " << t << " is " << result << ", not "
                    << wanted << " (seed " << kSeed << ")";
            }
        }
    }

    const DataTypeTraits& type;
    std::int64_t columns;
    std::int64_t row_size;
    GuardedBytes weights;
    Tokens tokens;
    std::vector<float> expected;
};

std::vector<std::int64_t> column_counts(const DataTypeTraits& type) {
    if (type.block_values == 1) return {1, 31, 32, 33, 100, 256, 768, 2048};
    const std::int64_t block = type.block_values;
    std::vector<std::int64_t> counts{block, 3 * block, 5 * block, 768, 2048};
    if (block < 256) counts.push_back(9 * block);
    return counts;
}

class MatmulTest : public testing::TestWithParam<std::tuple<InstructionSet, const DataTypeTraits*>> {
  protected:
    void SetUp() override {
        matmul_ = matmul_table(std::get<0>(GetParam()))[static_cast<std::size_t>(type().type)];
        ASSERT_NE(matmul_, nullptr);
    }

    const DataTypeTraits& type() const { return *std::get<1>(GetParam()); }
    MatmulFunction matmul_ = nullptr;
    SplitMix64 random_{kSeed};
};

TEST_P(MatmulTest, GivesTheBitsOfTheLawForAllShapes) {
    for (const std::int64_t columns : column_counts(type())) {
        Case data(type(), columns, Weights::Ordinary, Guard::After, random_);
        for (const std::int64_t rows : {1, 3, 7, 8, 9, 15, 16, 17, 33}) {
            for (const std::int64_t tokens : {1, 2, 3, 5, 8, 31, 64, 130}) {
                data.check(matmul_, kMostRows - rows, rows, tokens);
                if (HasFatalFailure()) return;
            }
        }
    }
}

TEST_P(MatmulTest, GivesTheBitsOfTheLawForAllWeights) {
    for (const Weights kind : {Weights::AnyBits, Weights::Zeros, Weights::Ones, Weights::LargeCodes}) {
        for (const Guard guard : {Guard::Before, Guard::After}) {
            const std::int64_t columns = guard == Guard::Before ? 768 : 2048;
            Case data(type(), columns, kind, guard, random_);
            for (const std::int64_t tokens : {1, 7}) {
                const std::int64_t rows = 19;
                data.check(matmul_, guard == Guard::Before ? 0 : kMostRows - rows, rows, tokens);
                if (HasFatalFailure()) return;
            }
        }
    }
}

TEST_P(MatmulTest, HasNothingToDoWithoutRowsOrTokens) {
    Case data(type(), type().block_values * 3, Weights::Ordinary, Guard::After, random_);
    data.check(matmul_, 0, 0, 3);
    data.check(matmul_, 0, 3, 0);
}

std::vector<InstructionSet> sets_of_this_machine() {
    std::vector<InstructionSet> sets;
    for (const InstructionSet set : kInstructionSets) {
        if (machine_has(set)) sets.push_back(set);
    }
    return sets;
}

std::vector<const DataTypeTraits*> types_with_a_product() {
    std::vector<const DataTypeTraits*> types;
    for (const DataTypeTraits& type : all_data_types()) {
        if (type.dot != nullptr) types.push_back(&type);
    }
    return types;
}

INSTANTIATE_TEST_SUITE_P(AllSetsAndTypes, MatmulTest,
                         testing::Combine(testing::ValuesIn(sets_of_this_machine()),
                                          testing::ValuesIn(types_with_a_product())),
                         [](const auto& test) {
                             return std::string(name_of(std::get<0>(test.param))) + "_" +
                                    std::string(std::get<1>(test.param)->name);
                         });

TEST(MatmulTableTest, HasTheTypesOfTheScalarTable) {
    for (const InstructionSet set : kInstructionSets) {
        for (const DataTypeTraits& type : all_data_types()) {
            const auto function = matmul_table(set)[static_cast<std::size_t>(type.type)];
            EXPECT_EQ(function != nullptr, type.dot != nullptr) << type.name;
        }
    }
}

}  // namespace
}  // namespace coterie::cpu
