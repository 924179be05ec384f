#pragma once

#include <cstdint>

#include "kernels/cuda/activations.h"
#include "kernels/cuda/device/async_copy.cuh"
#include "kernels/cuda/device/group.cuh"
#include "kernels/cuda/device/lanes.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul.h"

/// What a block's products read, in shared memory: all of it is asked for at once, and weights that are known
/// before the kernel ahead has ended. Each warp stages the rows that it multiplies.
namespace coterie::cuda {

inline constexpr std::uint32_t kStagingUnit = 16;

__host__ __device__ constexpr std::uint32_t staging_units(std::uint64_t bytes) {
    return static_cast<std::uint32_t>((bytes + kStagingUnit - 1) / kStagingUnit) * kStagingUnit;
}

/// From one staged row to the next: an odd number of units where rows are whole ones, so that threads at the
/// same place of neighbouring rows do not meet in the same banks.
__host__ __device__ constexpr std::uint32_t staged_pitch(std::uint32_t row_bytes) {
    return row_bytes % (2 * kStagingUnit) == 0 ? row_bytes + kStagingUnit : row_bytes;
}

/// How a block's shared memory is cut: a part for each warp's rows, then the inputs.
struct Staging {
    std::uint32_t warp_bytes = 0;  ///< 0: everything is read where it is
    std::uint32_t groups = 0;      ///< of an input row, a multiple of 4
};

struct StagingPlan {
    Staging staging;
    std::size_t shared_bytes = 0;

    StagingPlan() = default;
    /// For inputs alone; weights are read where they are.
    static StagingPlan of_inputs(int tokens, int columns) {
        StagingPlan plan;
        plan.staging.groups = static_cast<std::uint32_t>((columns / 32 + 3) / 4 * 4);
        plan.shared_bytes = static_cast<std::size_t>(ActivationBuffer::bytes(tokens, plan.staging.groups));
        return plan;
    }
    /// For `warps` warps of `rows` rows each, wherever they begin, and `tokens` rows of `columns` inputs.
    StagingPlan(std::int64_t row_bytes, int rows, int warps, int tokens, int columns) {
        if (static_cast<std::uint64_t>(row_bytes) > most_shared_bytes()) return;
        const std::int64_t groups = (columns / 32 + 3) / 4 * 4;
        const std::uint64_t warp_bytes = staging_units(
            static_cast<std::uint64_t>(rows) * staged_pitch(static_cast<std::uint32_t>(row_bytes)) +
            kStagingUnit - 1);
        const std::uint64_t total = warp_bytes * static_cast<std::uint64_t>(warps) +
                                    static_cast<std::uint64_t>(ActivationBuffer::bytes(tokens, groups));
        if (total > most_shared_bytes()) return;
        staging = {static_cast<std::uint32_t>(warp_bytes), static_cast<std::uint32_t>(groups)};
        shared_bytes = total;
    }
};

/// By `threads` threads of which this is one; both addresses multiples of a unit, bytes too.
struct Crew {
    unsigned thread;
    unsigned threads;
};

__device__ __forceinline__ void copy_units(std::byte* shared, const std::byte* from, std::uint32_t bytes,
                                           Crew crew) {
#pragma unroll 1
    for (std::uint32_t at = crew.thread * kStagingUnit; at < bytes; at += crew.threads * kStagingUnit)
        copy_to_shared<kStagingUnit>(shared + at, from + at);
}

/// The rows of a warp: `first` is where row 0 is or will be.
struct WarpRows {
    const std::uint8_t* first;
    std::uint32_t pitch;
    __device__ const std::uint8_t* row(int i) const { return first + static_cast<std::uint32_t>(i) * pitch; }
};

/// Asks for a warp's `rows` rows, by that warp. Rows that are no whole units are read on to the next one
/// (matmul.h).
__device__ __forceinline__ WarpRows stage_rows(std::byte* shared, const std::uint8_t* from,
                                               std::uint32_t row_bytes, int rows) {
    const Crew warp{threadIdx.x % 32, 32};
    const std::uint32_t pitch = staged_pitch(row_bytes);
    const auto skip = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(from) % kStagingUnit);
    const auto* units = reinterpret_cast<const std::byte*>(from - skip);
    if (pitch == row_bytes) {
        copy_units(shared, units, static_cast<std::uint32_t>(rows) * row_bytes + skip, warp);
    } else {
#pragma unroll 1
        for (int i = 0; i < rows; ++i)
            copy_units(shared + i * pitch, units + i * row_bytes, row_bytes + skip, warp);
    }
    return {reinterpret_cast<const std::uint8_t*>(shared) + skip, pitch};
}

/// Where row i of a warp's rows is or will be.
__device__ __forceinline__ const std::uint8_t* staged_row(std::byte* shared, const std::uint8_t* from,
                                                          std::uint32_t row_bytes, int i) {
    const auto skip = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(from) % kStagingUnit);
    return reinterpret_cast<const std::uint8_t*>(shared) + skip +
           static_cast<std::uint32_t>(i) * staged_pitch(row_bytes);
}

/// Asks for bytes [begin, end) of each of a warp's rows of two matrices, at most four rows of each, to where
/// `stage_rows` would bring them: eight lanes a row. Rows are whole units, and so are the parts between them:
/// one that begins or ends within a unit comes with what is before it.
class RowParts {
  public:
    __device__ __forceinline__ RowParts(std::byte* first_place, std::byte* second_place,
                                        const std::uint8_t* first, const std::uint8_t* second,
                                        std::uint32_t row_bytes, int rows) {
        constexpr int kLanes = 8;  // of a row
        const int row = lane_index() / kLanes;
        const auto unit = static_cast<std::uint32_t>(lane_index() % kLanes) * kStagingUnit;
        const std::uint32_t to = static_cast<std::uint32_t>(row) * staged_pitch(row_bytes);
        const std::uint32_t from = static_cast<std::uint32_t>(row) * row_bytes;
        to_[0] = first_place + to;
        to_[1] = second_place + to;
        from_[0] = first + from;
        from_[1] = second + from;
        unit_ = row < rows ? unit : row_bytes;
    }
    __device__ __forceinline__ void ask_for(std::uint32_t begin, std::uint32_t end) const {
#pragma unroll 1
        for (std::uint32_t at = staging_units(begin) + unit_; at < staging_units(end);
             at += 8 * kStagingUnit) {
            copy_to_shared<kStagingUnit>(to_[0] + at, from_[0] + at);
            copy_to_shared<kStagingUnit>(to_[1] + at, from_[1] + at);
        }
    }

  private:
    std::byte* to_[2];
    const std::uint8_t* from_[2];
    std::uint32_t unit_;  ///< of the lane, or the row's end
};

/// `ActivationBuffer::in` for shared memory.
__device__ __forceinline__ ActivationBuffer activations_in(std::byte* shared, unsigned tokens,
                                                           std::uint32_t groups) {
    ActivationBuffer staged;
    staged.quants = reinterpret_cast<std::int8_t*>(shared);
    staged.scales = reinterpret_cast<float*>(shared + tokens * groups * 32);
    staged.half_sums = reinterpret_cast<std::int16_t*>(shared + tokens * groups * 40);
    staged.groups = groups;
    return staged;
}

/// Asks for rows [first, first + tokens) of x, of which products of this form read all that is copied.
template <Form kForm>
__device__ __forceinline__ ActivationBuffer stage_inputs(std::byte* shared, const ActivationBuffer& x,
                                                         unsigned first, unsigned tokens,
                                                         std::uint32_t groups, Crew crew) {
    const ActivationBuffer staged = activations_in(shared, tokens, groups);
    const auto copy = [crew](void* to, const void* from, std::uint32_t bytes) {
        copy_units(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes, crew);
    };
#pragma unroll 1
    for (unsigned t = 0; t < tokens; ++t) {
        const std::int64_t from = (first + t) * x.groups;
        copy(staged.quants + t * groups * 32, x.quants + from * 32, groups * 32);
        copy(staged.scales + t * groups * 2, x.scales + from * 2, groups * 8);
        if constexpr (kReadsHalfSums<kForm>)
            copy(staged.half_sums + t * groups * 2, x.half_sums + from * 2, groups * 4);
    }
    return staged;
}

/// A pair's matrix; `slot` is not 0.
template <typename Args>
__device__ __forceinline__ const std::uint8_t* expert_matrix(const Args& args, int matrix, int pair,
                                                             std::uint64_t slot) {
    if (slot != kOnHost) return reinterpret_cast<const std::uint8_t*>(slot + args.offsets[matrix]);
    return reinterpret_cast<const std::uint8_t*>(args.hosts[matrix][args.experts[pair]]);
}

/// What a matrix's scale and bias make of a product.
template <typename Args>
__device__ __forceinline__ float scaled_and_biased(const Args& args, int matrix, std::int64_t expert, int row,
                                                   float value) {
    if (args.scales[matrix] != nullptr) value = __fmul_rn(value, args.scales[matrix][expert]);
    if (args.biases[matrix] != nullptr)
        value = __fadd_rn(value, args.biases[matrix][expert * args.rows + row]);
    return value;
}

}  // namespace coterie::cuda
