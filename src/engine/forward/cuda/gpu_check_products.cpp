#include <algorithm>
#include <array>
#include <string>

#include "engine/forward/cuda/gpu_check.h"
#include "kernels/cuda/matmul.h"
#include "kernels/reference/reference.h"
#include "quant/random_blocks.h"

namespace coterie::engine {
namespace {

using Floats = std::vector<float>;

constexpr std::int64_t kColumns = 768;  ///< whole blocks of every type
constexpr std::int64_t kDenseRows = 37;
constexpr std::int64_t kExpertRows = 64;  ///< whole groups: they are quantised for the next product

std::string kernel_name(const char* kernel, DataType type) {
    return std::string(kernel) + " " + std::string(traits(type).name);
}

/// A matrix of random blocks, and the law for it.
class TestMatrix {
  public:
    TestMatrix(GpuCheck& check, DataType type, std::int64_t rows)
        : traits_(traits(type)), rows_(rows), row_bytes_(row_bytes(type, kColumns).value()) {
        data_.resize(static_cast<std::size_t>(rows * row_bytes_));
        RandomBlocks(type, 0.05f).fill(check.random(), rows * kColumns / traits_.block_values, data_.data());
    }
    std::int64_t bytes_of_row() const { return row_bytes_; }
    const std::vector<std::byte>& data() const { return data_; }
    /// [rows]
    Floats times(const ActivationRow& x) const {
        Floats out;
        for (std::int64_t r = 0; r < rows_; ++r) out.push_back(traits_.dot(data_.data() + r * row_bytes_, x));
        return out;
    }

  private:
    const DataTypeTraits& traits_;
    std::int64_t rows_;
    std::int64_t row_bytes_;
    std::vector<std::byte> data_;
};

/// Two experts' gate and up in slots, and pairs that want them in turns; one pair's expert is not there.
class TestExperts {
  public:
    static constexpr std::int32_t kExperts = 2;
    static constexpr std::int32_t kPairs = 20;  ///< one a token
    static constexpr std::int32_t kMissing = 3;

    TestExperts(GpuCheck& check, DataType type) : x_(check, kPairs, kColumns) {
        std::vector<std::uint64_t> addresses;
        for (int e = 0; e < kExperts; ++e) {
            gates_.emplace_back(check, type, kExpertRows);
            ups_.emplace_back(check, type, kExpertRows);
            addresses.push_back(put_slot(check, gates_.back().data(), ups_.back().data()));
        }
        std::vector<std::uint64_t> slots;
        std::vector<std::int32_t> experts;
        for (std::int32_t p = 0; p < kPairs; ++p) {
            const std::int32_t e = p % kExperts;
            experts.push_back(e);
            slots.push_back(p == kMissing ? 0 : addresses[static_cast<std::size_t>(e)]);
            const auto i = static_cast<std::size_t>(e);
            gate_law_.push_back(p == kMissing ? Floats() : gates_[i].times(x_.row(p)));
            up_law_.push_back(p == kMissing ? Floats() : ups_[i].times(x_.row(p)));
        }
        slots_ = check.put(slots);
        experts_ = check.put(experts);
    }

    /// The fields that both kinds of arguments share.
    template <typename Args>
    Args args() const {
        Args args;
        args.slots = slots_;
        args.experts = experts_;
        args.offsets[1] = up_offset_;
        args.pairs = kPairs;
        args.rows = static_cast<std::int32_t>(kExpertRows);
        args.columns = static_cast<std::int32_t>(kColumns);
        args.row_bytes = gates_[0].bytes_of_row();
        args.x = x_.on_device();
        return args;
    }
    const Floats& gate_law(std::int32_t pair) const { return gate_law_[static_cast<std::size_t>(pair)]; }
    const Floats& up_law(std::int32_t pair) const { return up_law_[static_cast<std::size_t>(pair)]; }

    /// The pairs as `sort_pairs` puts them.
    cuda::SortedPairs sorted(GpuCheck& check, std::int32_t tile_pairs) const {
        cuda::SortedPairs out;
        out.most_tiles =
            static_cast<std::int32_t>(cuda::SortedPairs::most_tiles_of(kPairs, kExperts, tile_pairs));
        out.tile_pairs = tile_pairs;
        out.order = check.take<std::int32_t>(kPairs);
        out.tiles = check.take<cuda::PairTile>(out.most_tiles);
        out.tile_count = check.take<std::int32_t>(1);
        cuda::sort_pairs({slots_, experts_, kPairs, kExperts, out}, check.handle());
        return out;
    }

  private:
    std::uint64_t put_slot(GpuCheck& check, const std::vector<std::byte>& gate,
                           const std::vector<std::byte>& up) {
        up_offset_ =
            (gate.size() + cuda::kWeightAlignment - 1) / cuda::kWeightAlignment * cuda::kWeightAlignment;
        std::vector<std::byte> slot(gate);
        slot.resize(up_offset_);
        slot.insert(slot.end(), up.begin(), up.end());
        return reinterpret_cast<std::uint64_t>(check.put(slot));
    }

    TestRows x_;
    std::vector<TestMatrix> gates_;
    std::vector<TestMatrix> ups_;
    std::vector<Floats> gate_law_;  ///< [pairs]
    std::vector<Floats> up_law_;
    std::uint64_t up_offset_ = 0;
    const std::uint64_t* slots_ = nullptr;
    const std::int32_t* experts_ = nullptr;
};

constexpr std::int64_t kStride = kExpertRows;  ///< of pairs' outputs

void check_two_matrices(GpuCheck& check, DataType type, const TestExperts& experts,
                        const cuda::SortedPairs& sorted, const char* kernel) {
    auto args = experts.args<cuda::ExpertMatmulArgs>();
    args.matrices = 2;
    args.sorted = sorted;
    args.out = check.take<float>(2 * TestExperts::kPairs * kStride);
    args.out_stride = kStride;
    cuda::matmul_kernels(type)->expert_matmul(args, check.handle());
    for (std::int32_t p = 0; p < TestExperts::kPairs; ++p) {
        check.expect(kernel_name(kernel, type), args.out + p * kStride, experts.gate_law(p));
        check.expect(kernel_name(kernel, type), args.out + (TestExperts::kPairs + p) * kStride,
                     experts.up_law(p));
    }
}

void check_gate_up(GpuCheck& check, DataType type, const TestExperts& experts) {
    auto args = experts.args<cuda::ExpertGateArgs>();
    args.out = check.take<float>(TestExperts::kPairs * kStride);
    args.out_stride = kStride;
    cuda::matmul_kernels(type)->expert_gate_up(args, check.handle());
    for (std::int32_t p = 0; p < TestExperts::kPairs; ++p) {
        if (p == TestExperts::kMissing) continue;
        Floats law(kExpertRows);
        reference::swiglu(experts.gate_law(p).data(), experts.up_law(p).data(), kExpertRows, law.data());
        check.expect(kernel_name("expert_gate_up", type), args.out + p * kStride, law);
    }
}

}  // namespace

void check_dense_products(GpuCheck& check, DataType type) {
    constexpr std::int64_t kMostTokens = 17;  // of 1, of few, of several, and of many that share a tile
    check.clear();
    const TestMatrix matrix(check, type, kDenseRows);
    const TestRows x(check, kMostTokens, kColumns);
    Floats law;
    for (std::int64_t t = 0; t < kMostTokens; ++t) {
        const Floats row = matrix.times(x.row(t));
        law.insert(law.end(), row.begin(), row.end());
    }
    cuda::MatmulArgs args;
    args.jobs[0] = {.weights = check.put(matrix.data()),
                    .row_bytes = matrix.bytes_of_row(),
                    .rows = static_cast<std::int32_t>(kDenseRows),
                    .out_stride = kDenseRows};
    args.count = 1;
    args.columns = static_cast<std::int32_t>(kColumns);
    args.x = x.on_device();
    for (const std::int64_t tokens : {std::int64_t{1}, std::int64_t{3}, std::int64_t{8}, kMostTokens}) {
        args.tokens = static_cast<std::int32_t>(tokens);
        args.jobs[0].out = check.take<float>(tokens * kDenseRows);
        cuda::matmul_kernels(type)->matmul(args, check.handle());
        check.expect(kernel_name("matmul", type), args.jobs[0].out,
                     std::span(law).first(static_cast<std::size_t>(tokens * kDenseRows)));
    }
}

void check_expert_products(GpuCheck& check, DataType type) {
    check.clear();
    const TestExperts experts(check, type);
    check_two_matrices(check, type, experts, {}, "expert_matmul");
    for (const std::int32_t pairs : {cuda::SortedPairs::kNarrow, cuda::SortedPairs::kWide})
        check_two_matrices(check, type, experts, experts.sorted(check, pairs), "sorted expert_matmul");
    if (cuda::matmul_kernels(type)->expert_gate_up != nullptr) check_gate_up(check, type, experts);
}

}  // namespace coterie::engine
