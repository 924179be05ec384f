#include "kernels/cpu/fill_ops.h"
#include "kernels/reference/reference.h"

namespace coterie::cpu::scalar {

void fill_ops(KernelTable& table) {
    table.rms_norm = reference::rms_norm;
    table.l2_norm = reference::l2_norm;
    table.add = reference::add;
    table.add_scaled = reference::add_scaled;
    table.multiply = reference::multiply;
    table.swiglu = reference::swiglu;
    table.swiglu_oai = reference::swiglu_oai;
    table.silu = reference::silu;
    table.sigmoid = reference::sigmoid;
    table.softplus = reference::softplus;
    table.softmax = reference::softmax;
    table.dot_f32 = reference::dot_f32;
    table.rope_adjacent = reference::rope_adjacent;
    table.rope_halves = reference::rope_halves;
    table.store_cache = reference::store_cache;
    table.attention = reference::attention;
    table.delta_rule = reference::delta_rule;
}

}  // namespace coterie::cpu::scalar
