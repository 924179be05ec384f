#include <algorithm>
#include <chrono>
#include <memory>
#include <span>

#include "engine/forward/activation_store.h"
#include "engine/forward/cuda/device_arena.h"
#include "engine/probe/gpu_probe.h"
#include "engine/probe/median.h"
#include "kernels/cuda/matmul.h"

namespace coterie::engine {
namespace {

constexpr int kRounds = 9;
constexpr std::int64_t kPairs = 8;  ///< a token's experts of a layer, all of which miss

bool has_products(const ProbeExperts& experts) {
    for (const models::ExpertMatrix* matrix : {&experts.gate(), &experts.up(), &experts.down()}) {
        const cuda::MatmulKernels* kernels = cuda::matmul_kernels(matrix->type);
        if (kernels == nullptr) return false;
        if (kernels->prepare != nullptr) kernels->prepare();
    }
    return true;
}

/// kPairs experts of one token as steps compute them that miss: straight out of the host's memory. The
/// activations are zero, which takes as long as any.
class LinkedExperts {
  public:
    LinkedExperts(CudaDevice& device, const ProbeExperts& experts)
        : experts_(experts),
          arena_(device),
          stream_(device.create_cuda_stream()),
          slots_(arena_.take<std::uint64_t>(kPairs)),
          chosen_(arena_.take<std::int32_t>(kPairs)),
          pinned_slots_(device.allocate_pinned(kPairs * sizeof(std::uint64_t))),
          pinned_chosen_(device.allocate_pinned(kPairs * sizeof(std::int32_t))),
          gate_(addresses(device, experts.gate())),
          up_(addresses(device, experts.up())),
          down_(addresses(device, experts.down())),
          input_(zeros(1, experts.gate().columns)),
          hidden_(zeros(kPairs, experts.down().columns)),
          up_rows_(arena_.take<float>(kPairs * hidden_.value_stride)),
          outputs_(arena_.take<float>(kPairs * stored_groups(experts.down().rows) * kGroupValues)) {
        std::fill_n(reinterpret_cast<std::uint64_t*>(pinned_slots_->span().data()), kPairs, cuda::kOnHost);
        stream_->copy_to_device(device_address(slots_), pinned_slots_->span());
        stream_->synchronise();
    }

    /// The next ones, so that none is in a cache.
    double seconds_per_expert() {
        for (std::int64_t pair = 0; pair < kPairs; ++pair)
            reinterpret_cast<std::int32_t*>(pinned_chosen_->span().data())[pair] =
                static_cast<std::int32_t>(next_++ % experts_.count());
        stream_->copy_to_device(device_address(chosen_), pinned_chosen_->span());
        stream_->synchronise();
        const auto start = std::chrono::steady_clock::now();
        run_gate_up();
        multiply(experts_.down(), down_, 1, hidden_, outputs_);
        stream_->synchronise();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        return took.count() / static_cast<double>(kPairs);
    }

  private:
    const std::uint64_t* addresses(CudaDevice& device, const models::ExpertMatrix& matrix) {
        auto* table = arena_.take<std::uint64_t>(experts_.count());
        const auto bytes = std::as_bytes(std::span(matrix.data));
        const auto host = device.allocate_pinned(bytes.size());
        std::copy(bytes.begin(), bytes.end(), host->span().begin());
        stream_->copy_to_device(device_address(table), host->span());
        stream_->synchronise();
        return table;
    }

    cuda::Activations zeros(std::int64_t rows, std::int64_t columns) {
        const std::int64_t groups = stored_groups(columns);
        const auto bytes = static_cast<std::uint64_t>(cuda::ActivationBuffer::bytes(rows, groups));
        auto* values = arena_.take<float>(rows * groups * kGroupValues);
        auto* quantised = arena_.take<std::byte>(static_cast<std::int64_t>(bytes));
        const auto value_bytes = static_cast<std::uint64_t>(rows * groups * kGroupValues) * sizeof(float);
        stream_->fill(device_address(values), value_bytes, std::byte{0});
        stream_->fill(device_address(quantised), bytes, std::byte{0});
        return {values, groups * kGroupValues, cuda::ActivationBuffer::in(quantised, rows, groups)};
    }

    void run_gate_up() {
        const models::ExpertMatrix& gate = experts_.gate();
        const auto* kernels = cuda::matmul_kernels(gate.type);
        if (gate.type == experts_.up().type && kernels->expert_gate_up != nullptr) return run_fused(*kernels);
        auto* rows = const_cast<float*>(hidden_.values);
        multiply(gate, gate_, kPairs, input_, rows);
        multiply(experts_.up(), up_, kPairs, input_, up_rows_);
    }

    void run_fused(const cuda::MatmulKernels& kernels) {
        cuda::ExpertGateArgs args;
        args.slots = slots_;
        args.experts = chosen_;
        args.hosts[0] = gate_;
        args.hosts[1] = up_;
        args.pairs = static_cast<std::int32_t>(kPairs);
        args.pairs_per_input = static_cast<std::int32_t>(kPairs);
        args.rows = static_cast<std::int32_t>(experts_.gate().rows);
        args.columns = static_cast<std::int32_t>(experts_.gate().columns);
        args.row_bytes = experts_.gate().row_bytes;
        args.x = input_;
        args.out = const_cast<float*>(hidden_.values);
        args.out_stride = hidden_.value_stride;
        kernels.expert_gate_up(args, stream_->handle());
    }

    void multiply(const models::ExpertMatrix& weight, const std::uint64_t* hosts,
                  std::int64_t pairs_per_input, const cuda::Activations& x, float* out) {
        cuda::ExpertMatmulArgs args;
        args.slots = slots_;
        args.experts = chosen_;
        args.slots_known = true;
        args.hosts[0] = hosts;
        args.pairs = static_cast<std::int32_t>(kPairs);
        args.pairs_per_input = static_cast<std::int32_t>(pairs_per_input);
        args.rows = static_cast<std::int32_t>(weight.rows);
        args.columns = static_cast<std::int32_t>(weight.columns);
        args.row_bytes = weight.row_bytes;
        args.x = x;
        args.out = out;
        args.out_stride = stored_groups(weight.rows) * kGroupValues;
        cuda::matmul_kernels(weight.type)->expert_matmul(args, stream_->handle());
    }

    const ProbeExperts& experts_;
    DeviceArena arena_;
    std::unique_ptr<CudaStream> stream_;
    std::uint64_t* slots_;  ///< [kPairs]
    std::int32_t* chosen_;  ///< [kPairs]
    std::unique_ptr<PinnedMemory> pinned_slots_;
    std::unique_ptr<PinnedMemory> pinned_chosen_;
    const std::uint64_t* gate_;  ///< [experts]
    const std::uint64_t* up_;
    const std::uint64_t* down_;
    cuda::Activations input_;
    cuda::Activations hidden_;
    float* up_rows_;
    float* outputs_;
    std::int64_t next_ = 0;
};

}  // namespace

double seconds_per_linked_expert(int index, const ProbeExperts& experts) {
    const std::unique_ptr<CudaDevice> device = open_cuda_device(index);
    device->make_current();
    if (!has_products(experts)) return 0;
    const auto registration = device->register_memory(experts.memory());
    if (registration == nullptr) return 0;
    LinkedExperts linked(*device, experts);
    return median_of(kRounds, [&] { return linked.seconds_per_expert(); });
}

}  // namespace coterie::engine
