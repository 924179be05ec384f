#pragma once

#include <cstdint>
#include <span>

#include "kernels/cuda/activations.h"
#include "kernels/cuda/moe.h"
#include "kernels/cuda/pair_sort.h"
#include "kernels/cuda/row_ops.h"
#include "quant/data_type.h"

/// Products of weight rows with tokens' rows on the device, bit for bit those of the CPU.
namespace coterie::cuda {

/// out[t * out_stride + r] = (row r . x[t]) * scale + bias[r]
struct MatmulJob {
    const std::byte* weights = nullptr;
    std::int64_t row_bytes = 0;
    std::int32_t rows = 0;
    float scale = 1.0f;
    const float* bias = nullptr;  ///< [rows] or null
    float* out = nullptr;
    std::int64_t out_stride = 0;
};
inline constexpr int kMatmulJobs = 4;

/// Up to kMatmulJobs products of one type that share their input.
struct MatmulArgs {
    MatmulJob jobs[kMatmulJobs];
    int count = 0;
    std::int32_t columns = 0;
    std::int32_t tokens = 0;
    Activations x;
};

/// A value of `slots`: the device reads the pair's expert over the link, where it lies in the host's memory.
inline constexpr std::uint64_t kOnHost = 1;

/// Products of experts, each (token, expert) pair with its own weights: out[(m * pairs + p) * out_stride +
/// r], for matrices m of one type and shape (gate and up, or down). Pairs without a slot are left out.
struct ExpertMatmulArgs {
    const std::uint64_t* slots = nullptr;  ///< [pairs]: address of the pair's expert; 0: left out; or kOnHost
    const std::int32_t* experts = nullptr;  ///< [pairs]: for scales and biases
    std::uint64_t offsets[2] = {};          ///< [matrices]: of the matrix in a slot
    const std::uint64_t* hosts[2] =
        {};  ///< [matrices][experts]: addresses for kOnHost, which sorted pairs never have
    const float* scales[2] = {};  ///< [matrices][experts] or null
    const float* biases[2] = {};  ///< [matrices][experts][rows] or null
    int matrices = 1;
    /// `slots` were written before the kernel that goes ahead of this one, so weights may be asked for early.
    bool slots_known = false;
    std::int32_t pairs = 0;
    std::int32_t pairs_per_input = 1;  ///< pair p reads row p / pairs_per_input of x
    std::int32_t rows = 0;
    std::int32_t columns = 0;
    std::int64_t row_bytes = 0;
    Activations x;
    float* out = nullptr;
    std::int64_t out_stride = 0;
    /// Of the same pairs, where many pairs share experts: then weights are read once for a tile of pairs. The
    /// outputs and their places are the same.
    SortedPairs sorted;
};

/// Gate and up of experts at once, both of one type: activation(gate, up). Fields as in ExpertMatmulArgs.
struct ExpertGateArgs {
    const std::uint64_t* slots = nullptr;
    const std::int32_t* experts = nullptr;
    std::uint64_t offsets[2] = {};  ///< gate, up
    const std::uint64_t* hosts[2] = {};
    const float* scales[2] = {};
    const float* biases[2] = {};
    std::int32_t pairs = 0;
    std::int32_t pairs_per_input = 1;
    std::int32_t rows = 0;
    std::int32_t columns = 0;
    std::int64_t row_bytes = 0;
    Gate activation = Gate::SwiGlu;
    Activations x;
    float* out = nullptr;  ///< [pairs][out_stride]
    std::int64_t out_stride = 0;
};

/// Products of a single token's row that is yet to be normalised, and the storing of its norm. The jobs from
/// `first_of_second` on are of a second type.
using NormedMatmul = void (*)(const MatmulArgs& args, const NormedInput& input, int first_of_second,
                              StreamHandle stream);
/// Of a block's shared memory, for 32 values of the row.
inline constexpr std::int64_t kNormedGroupBytes = ActivationBuffer::kGroupBytes + 32 * sizeof(float);
/// Whether the current GPU has room for rows of `width` values there.
bool takes_normed(std::int32_t width);

/// Down of experts and their sum at once, for a few tokens: `down` as for a product, but its outputs go
/// nowhere else, its slots, experts and combine's weights were written before the kernel that goes ahead, and
/// it reads the values of `down.x`, which it quantises for itself. Throws Internal unless `takes_combined`.
using ExpertCombine = void (*)(const ExpertMatmulArgs& down, const CombineArgs& combine, StreamHandle stream);
inline constexpr int kMostCombined = 8;  ///< experts of a token
/// Whether a type has such a kernel and the current GPU room for the inputs of `used` experts of a token.
bool takes_combined(DataType type, std::int64_t used, std::int64_t columns);

/// One type's kernels.
struct MatmulKernels {
    void (*matmul)(const MatmulArgs&, StreamHandle) = nullptr;
    void (*expert_matmul)(const ExpertMatmulArgs&, StreamHandle) = nullptr;
    // Null where the type has none.
    void (*expert_gate_up)(const ExpertGateArgs&, StreamHandle) = nullptr;
    ExpertCombine expert_combine = nullptr;
    NormedMatmul normed_matmul = nullptr;  ///< of this type alone
    /// Fills a codebook, once a device, before the first product; null: nothing to do.
    void (*prepare)() = nullptr;
};

/// Null where the type has no product. Throws Internal where a launch fails.
const MatmulKernels* matmul_kernels(DataType type);

/// Null where there is none for these two.
NormedMatmul normed_matmul(DataType first, DataType second);

/// What the base addresses of weights must be a multiple of; bytes up to the next multiple behind their end
/// can be read.
inline constexpr std::uint64_t kWeightAlignment = 16;

}  // namespace coterie::cuda
