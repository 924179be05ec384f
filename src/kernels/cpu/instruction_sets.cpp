#include "kernels/cpu/instruction_sets.h"

#include <cpuid.h>

namespace coterie::cpu {
namespace {

/// __builtin_cpu_supports does not know F16C in every compiler.
bool has_f16c() {
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c(); }

bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}

}  // namespace

std::string_view name_of(InstructionSet set) {
    switch (set) {
        case InstructionSet::Scalar:
            return "scalar";
        case InstructionSet::Avx2:
            return "avx2";
        case InstructionSet::Avx512:
            return "avx512";
    }
    return "unknown";
}

bool machine_has(InstructionSet set) {
    switch (set) {
        case InstructionSet::Scalar:
            return true;
        case InstructionSet::Avx2:
            return has_avx2();
        case InstructionSet::Avx512:
            return has_avx512();
    }
    return false;
}

}  // namespace coterie::cpu
