#pragma once

#include "kernels/cpu/fill_ops.h"

// Included after the target region is closed, so that filling a table needs no special instruction.
namespace coterie::cpu::COTERIE_ISA {

void fill_ops(KernelTable& table) {
    table.rms_norm = rms_norm;
    table.l2_norm = l2_norm;
    table.add = map<Add>;
    table.add_scaled = add_scaled;
    table.multiply = map<Multiply>;
    table.swiglu = map<Swiglu>;
    table.swiglu_oai = map<SwigluOai>;
    table.silu = map<Silu>;
    table.sigmoid = map<Sigmoid>;
    table.softplus = map<Softplus>;
    table.softmax = softmax;
    table.dot_f32 = dot;
    table.rope_adjacent = rope_adjacent;
    table.rope_halves = rope_halves;
    table.store_cache = store_cache;
    table.attention = attention;
    table.delta_rule = delta_rule;
}

}  // namespace coterie::cpu::COTERIE_ISA
