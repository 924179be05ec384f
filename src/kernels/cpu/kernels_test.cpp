#include "kernels/cpu/kernels.h"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/instruction_sets.h"

namespace coterie::cpu {
namespace {

/// Leaves the choice as it was found.
class KernelsTest : public ::testing::Test {
  protected:
    void TearDown() override { force_instruction_set(chosen_); }

    const InstructionSet chosen_ = kernels().instruction_set;
};

TEST_F(KernelsTest, TheBestSetOfTheMachineIsChosen) {
    for (const InstructionSet set : kInstructionSets) {
        if (machine_has(set)) {
            EXPECT_GE(chosen_, set);
        }
    }
    EXPECT_TRUE(machine_has(chosen_));
}

TEST_F(KernelsTest, AForcedSetIsUsedUntilAnotherIsForced) {
    for (const InstructionSet set : kInstructionSets) {
        if (!machine_has(set)) continue;
        force_instruction_set(set);
        EXPECT_EQ(kernels().instruction_set, set);
        EXPECT_EQ(&kernels(), kernels_for(set));
        EXPECT_EQ(kernels().name, name_of(set));
    }
}

TEST_F(KernelsTest, AMissingSetIsRefusedByNameAndChangesNothing) {
    for (const InstructionSet set : kInstructionSets) {
        if (machine_has(set)) continue;
        EXPECT_EQ(kernels_for(set), nullptr);
        try {
            force_instruction_set(set);
            FAIL() << "not refused";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::Unsupported);
            EXPECT_NE(std::string(error.what()).find(name_of(set)), std::string::npos);
        }
        EXPECT_EQ(kernels().instruction_set, chosen_);
    }
}

TEST_F(KernelsTest, TablesAreCompleteForEveryTypeWithADotProduct) {
    for (const InstructionSet set : kInstructionSets) {
        const KernelTable* table = kernels_for(set);
        if (!table) continue;
        for (const DataTypeTraits& type : all_data_types()) {
            const bool present = table->matmul[static_cast<std::size_t>(type.type)] != nullptr;
            EXPECT_EQ(present, type.dot != nullptr) << table->name << " " << type.name;
        }
        EXPECT_NE(table->quantise_activation, nullptr);
        EXPECT_NE(table->attention, nullptr);
        EXPECT_NE(table->delta_rule, nullptr);
    }
}

TEST_F(KernelsTest, ThreadsMayReadWhileAnotherForces) {
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i) {
        readers.emplace_back([] {
            const float x[3] = {1.0f, 2.0f, 3.0f};
            for (int repeat = 0; repeat < 2000; ++repeat) EXPECT_EQ(kernels().dot_f32(x, x, 3), 14.0f);
        });
    }
    for (int repeat = 0; repeat < 200; ++repeat) {
        force_instruction_set(repeat % 2 == 0 ? InstructionSet::Scalar : chosen_);
    }
    for (std::thread& reader : readers) reader.join();
}

TEST_F(KernelsTest, CacheRowsHaveTheBytesOfTheirType) {
    EXPECT_EQ(cache_row_bytes(CacheType::F32, 96), 384);
    EXPECT_EQ(cache_row_bytes(CacheType::F16, 96), 192);
    EXPECT_EQ(cache_row_bytes(CacheType::Q8_0, 96), 3 * 34);
}

}  // namespace
}  // namespace coterie::cpu
