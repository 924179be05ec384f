#include "kernels/cpu/self_test.h"

#include <chrono>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/instruction_sets.h"

namespace coterie::cpu {
namespace {

std::vector<DataType> every_type() {
    std::vector<DataType> types;
    for (const DataTypeTraits& type : all_data_types()) types.push_back(type.type);
    return types;
}

/// The message of the error that the self-test ends in, empty where it passes.
std::string refusal(const KernelTable& table) {
    try {
        self_test(table, every_type());
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::Internal);
        return error.what();
    }
    return {};
}

TEST(SelfTest, EveryInstructionSetPassesWithAllTypes) {
    for (const InstructionSet set : kInstructionSets) {
        const KernelTable* table = kernels_for(set);
        if (!table) continue;
        EXPECT_EQ(refusal(*table), "") << table->name;
    }
}

TEST(SelfTest, AModelsTypesAreTestedBeforeAnyoneWaits) {
    const DataType types[] = {DataType::F32, DataType::Q4_K, DataType::Q5_K, DataType::Q6_K};
    const auto start = std::chrono::steady_clock::now();
    self_test(kernels(), types);
    const auto taken = std::chrono::steady_clock::now() - start;
    // About 30 ms in a release build; the bound leaves room for sanitizers and busy machines.
    EXPECT_LT(std::chrono::duration<double>(taken).count(), 2.0);
}

void wrong_add(const float* a, const float* b, std::int64_t n, float* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = a[i] - b[i];
}

/// The last value alone differs, by one unit of the last place.
void wrong_silu(const float* x, std::int64_t n, float* out) {
    kernels_for(InstructionSet::Scalar)->silu(x, n, out);
    out[n - 1] = std::nextafter(out[n - 1], 1e9f);
}

void wrong_matmul(const MatmulArgs& args) {
    kernels_for(InstructionSet::Scalar)->matmul[static_cast<std::size_t>(DataType::Q4_K)](args);
    if (args.tokens > 1) args.out[args.out_token_stride + args.rows - 1] += 1.0f;
}

void wrong_attention(const AttentionArgs& args) {
    AttentionArgs other = args;
    other.sinks = nullptr;
    kernels_for(InstructionSet::Scalar)->attention(other);
}

TEST(SelfTest, AWrongKernelIsNamed) {
    KernelTable table = kernels();
    table.add = wrong_add;
    EXPECT_NE(refusal(table).find("'add'"), std::string::npos);

    table = kernels();
    table.silu = wrong_silu;
    EXPECT_NE(refusal(table).find("'silu'"), std::string::npos);

    table = kernels();
    table.attention = wrong_attention;
    EXPECT_NE(refusal(table).find("'attention'"), std::string::npos);

    table = kernels();
    table.matmul[static_cast<std::size_t>(DataType::Q4_K)] = wrong_matmul;
    EXPECT_NE(refusal(table).find("'matmul Q4_K'"), std::string::npos);
    EXPECT_NE(refusal(table).find(std::string(table.name)), std::string::npos);
}

}  // namespace
}  // namespace coterie::cpu
