#include <gtest/gtest.h>

#include "kernels/cpu/instruction_sets.h"
#include "kernels/cpu/integer_peak.h"
#include "kernels/cpu/memory_bandwidth.h"

namespace coterie::cpu {
namespace {

/// Runs the rest of a test with each instruction set of this machine.
template <typename Body>
void with_each_set(Body body) {
    const InstructionSet before = kernels().instruction_set;
    for (const InstructionSet set : kInstructionSets) {
        if (!kernels_for(set)) continue;
        force_instruction_set(set);
        SCOPED_TRACE(name_of(set));
        body(set);
    }
    force_instruction_set(before);
}

TEST(MachineRatesTest, ReadRateIsOneThatMachinesHave) {
    with_each_set([](InstructionSet) {
        ThreadPool threads(2);
        const double rate = measure_read_rate(threads, std::size_t{64} << 20);
        EXPECT_GT(rate, 1e8);
        EXPECT_LT(rate, 1e13);
    });
}

TEST(MachineRatesTest, ABufferOfLessThanABlockPerThreadIsRoundedUp) {
    with_each_set([](InstructionSet) {
        ThreadPool threads(2);
        EXPECT_GT(measure_read_rate(threads, 1), 0.0);
    });
}

TEST(MachineRatesTest, WiderInstructionsHaveAHigherPeak) {
    double scalar = 0.0;
    with_each_set([&](InstructionSet set) {
        ThreadPool threads(1);
        const double peak = measure_integer_dot_peak(threads);
        EXPECT_LT(peak, 1e13);  // one core: 2 instructions of 128 operations at 40 GHz
        if (set == InstructionSet::Scalar) scalar = peak;
        if (set != InstructionSet::Scalar) {
            EXPECT_GT(peak, 3.0 * scalar);
        }
    });
    EXPECT_GT(scalar, 1e7);
}

}  // namespace
}  // namespace coterie::cpu
