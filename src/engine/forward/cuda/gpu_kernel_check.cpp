#include "engine/forward/cuda/gpu_kernel_check.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "engine/forward/cuda/gpu_check.h"

namespace coterie::engine {
namespace {

/// Heads of the model's width where the test takes it.
std::int32_t head_width(const WeightList& list) {
    constexpr std::int64_t kUsual = 128;
    const std::int64_t width = list.widest_value;
    return static_cast<std::int32_t>(width > 0 && width % kGroupValues == 0 ? width : kUsual);
}

void check_products(GpuCheck& check, const WeightList& list) {
    std::set<DataType> dense;
    std::set<DataType> experts;
    for (const models::Matrix* matrix : list.matrices) dense.insert(matrix->type);
    for (const models::MoeFfn* ffn : list.experts) {
        if (ffn != nullptr) experts.insert({ffn->gate.type, ffn->up.type, ffn->down.type});
    }
    for (const DataType type : dense) {
        check_dense_products(check, type);
        check_normed_products(check, type);
    }
    for (const DataType type : experts) {
        check_expert_products(check, type);
        check_expert_combine(check, type);
    }
}

/// Each kind of router once: layers differ in their weights only.
void check_routers(GpuCheck& check, const WeightList& list) {
    std::set<std::tuple<cpu::Gating, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>> known;
    for (const models::MoeFfn* ffn : list.experts) {
        if (ffn == nullptr) continue;
        const cpu::Routing& r = ffn->routing;
        if (!known.emplace(r.gating, r.experts, r.used, r.groups, r.groups_used, r.normalise).second)
            continue;
        check_route(check, r);
        check_normed_route(check, r);
    }
}

}  // namespace

void check_gpu_kernels(CudaDevice& device, CudaStream& stream, const WeightList& list) {
    GpuCheck check(device, stream);
    check_row_kernels(check);
    check_products(check, list);
    check_routers(check, list);
    check_combine(check);
    for (const auto type : {cpu::CacheType::F32, cpu::CacheType::F16, cpu::CacheType::Q8_0})
        check_attention(check, type, head_width(list));
    check.clear();
}

}  // namespace coterie::engine
