#include "kernels/cpu/kernels.h"

#include <atomic>

#include "base/error.h"
#include "kernels/cpu/fill_ops.h"
#include "kernels/cpu/instruction_sets.h"
#include "kernels/cpu/matmul/matmul.h"
#include "kernels/reference/cache_row.h"

namespace coterie::cpu {
namespace {

KernelTable make_table(InstructionSet set) {
    KernelTable table{};
    table.instruction_set = set;
    table.name = name_of(set);
    table.matmul = matmul_table(set);
    table.quantise_activation = quantise_activation_for(set);
    switch (set) {
        case InstructionSet::Scalar:
            scalar::fill_ops(table);
            break;
        case InstructionSet::Avx2:
            avx2::fill_ops(table);
            break;
        case InstructionSet::Avx512:
            avx512::fill_ops(table);
            break;
    }
    return table;
}

const KernelTable* best_table() {
    const KernelTable* best = nullptr;
    for (const InstructionSet set : kInstructionSets) {
        if (const KernelTable* table = kernels_for(set)) best = table;
    }
    return best;
}

std::atomic<const KernelTable*> g_forced{nullptr};

}  // namespace

const KernelTable& kernels() {
    if (const KernelTable* forced = g_forced.load(std::memory_order_acquire)) return *forced;
    static const KernelTable* const best = best_table();
    return *best;
}

const KernelTable* kernels_for(InstructionSet set) {
    if (!machine_has(set)) return nullptr;
    static const KernelTable scalar = make_table(InstructionSet::Scalar);
    static const KernelTable avx2 = make_table(InstructionSet::Avx2);
    static const KernelTable avx512 = make_table(InstructionSet::Avx512);
    switch (set) {
        case InstructionSet::Scalar:
            return &scalar;
        case InstructionSet::Avx2:
            return &avx2;
        case InstructionSet::Avx512:
            return &avx512;
    }
    return nullptr;
}

void force_instruction_set(InstructionSet set) {
    const KernelTable* table = kernels_for(set);
    if (!table) {
        fail(ErrorCode::Unsupported,
             "this processor has no {}; leave the instruction set to be chosen, or name 'scalar'",
             name_of(set));
    }
    g_forced.store(table, std::memory_order_release);
}

std::int64_t cache_row_bytes(CacheType type, std::int64_t n) {
    switch (type) {
        case CacheType::F32:
            return n * 4;
        case CacheType::F16:
            return n * 2;
        case CacheType::Q8_0:
            return (n + reference::kQ8BlockValues - 1) / reference::kQ8BlockValues * reference::kQ8BlockBytes;
    }
    return 0;
}

}  // namespace coterie::cpu
