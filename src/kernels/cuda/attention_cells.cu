#include "kernels/cuda/attention.h"
#include "kernels/cuda/device/async_copy.cuh"
#include "kernels/cuda/device/cache_row.cuh"
#include "kernels/cuda/device/half_mma.cuh"
#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/device/transcendental.cuh"
#include "kernels/cuda/launch.h"

// Attention of a prompt's full cells on tensor cores (docs/adr/0008-prompt-cells.md). A block takes the 64
// queries of one cell for one or two heads that share a key-value head, a warp sixteen of them; pages of keys
// and values come to shared memory in binary16, one is on its way while another is read. A query's result
// follows from its own row and the pages in ascending order alone, whatever else is in the step.
namespace coterie::cuda {
namespace {

constexpr int kCell = 64;
constexpr int kWarpQueries = 16;
constexpr int kHeadWarps = kCell / kWarpQueries;
constexpr int kHeadThreads = 32 * kHeadWarps;

/// One page's keys and values; rows are 16 bytes longer than they need, so that eight of them lie in
/// different banks.
template <int kWidth>
struct PageRows {
    __half keys[kCell][kWidth + 8];
    __half values[kCell][kWidth + 8];
};

/// Two pages, and later the results.
template <int kWidth, int kHeads>
struct CellShared {
    union {
        PageRows<kWidth> pages[2];
        float results[kHeads][kCell][kWidth];
    };
};

struct Cell {
    int first_row;
    int number;  ///< its page in the sequence
    int first_page;
    int kv_head;
    const std::uint32_t* pages;
};

__device__ Cell cell_of(const AttentionArgs& args, const PromptCells& cells, int kv_head) {
    const int row = cells.first_rows[gridDim.x - 1 - blockIdx.x];  // those that see most begin first
    const int position = args.places.positions[row];
    const int first = args.window > 0 ? max(0, position - args.window + 1) : 0;
    return {
        row, position / kCell, first / kCell, kv_head,
        args.places.pages + static_cast<std::int64_t>(args.places.sequences[row]) * args.places.page_stride};
}

/// Rows of one part of a page, as they are or brought to binary16.
template <int kWidth>
__device__ void stage_part(const AttentionArgs& args, const PagePartView& part, std::uint32_t page,
                           int kv_head, __half (&to)[kCell][kWidth + 8]) {
    if (part.type == cpu::CacheType::F16) {
        constexpr int kUnits = kWidth * 2 / 16;
        for (int i = static_cast<int>(threadIdx.x); i < kCell * kUnits; i += static_cast<int>(blockDim.x)) {
            const std::byte* row = cache_row(args.cache, part, page, i / kUnits, kv_head);
            copy_to_shared<16>(&to[i / kUnits][i % kUnits * 8], row + i % kUnits * 16);
        }
        return;
    }
    for (int i = static_cast<int>(threadIdx.x); i < kCell * kWidth; i += static_cast<int>(blockDim.x)) {
        const std::byte* row = cache_row(args.cache, part, page, i / kWidth, kv_head);
        to[i / kWidth][i % kWidth] = __float2half_rn(load_cache<cpu::CacheType::Q8_0>(row, i % kWidth));
    }
}

template <int kWidth>
__device__ void stage_page(const AttentionArgs& args, const Cell& cell, int page, PageRows<kWidth>& to) {
    stage_part<kWidth>(args, args.cache.keys, cell.pages[page], cell.kv_head, to.keys);
    stage_part<kWidth>(args, args.cache.values, cell.pages[page], cell.kv_head, to.values);
    close_copies();
}

__device__ std::uint32_t half_pair(float2 values) {
    constexpr float kLargest = 65504.0f;
    const auto inside = [](float x) { return fminf(fmaxf(x, -kLargest), kLargest); };
    const __half2 pair = __floats2half2_rn(inside(values.x), inside(values.y));
    return *reinterpret_cast<const std::uint32_t*>(&pair);
}

constexpr float kLog2E = 1.44269504f;

__device__ __forceinline__ float exp2_of(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

/// One warp's sixteen queries. A thread holds two of them, r and r + 8 for r = lane / 4, and of every eight
/// columns two: those of device/half_mma.cuh.
template <int kWidth>
class QueryTile {
  public:
    static constexpr int kSteps = kWidth / 16;

    __device__ QueryTile(const AttentionArgs& args, const Cell& cell, int head)
        : args_(args),
          cell_(cell),
          row_(warp_index() % kHeadWarps * kWarpQueries + lane_index() / 4),
          head_(head) {
        const int column = 2 * (lane_index() % 4);
        const float* queries =
            args.queries.data + (cell.first_row + row_) * args.queries.stride + head * kWidth;
        const auto pair = [&](int down, int i) {
            return half_pair(
                *reinterpret_cast<const float2*>(queries + 8 * down * args.queries.stride + i + column));
        };
#pragma unroll
        for (int k = 0; k < kSteps; ++k)
            queries_[k] = {pair(0, 16 * k), pair(1, 16 * k), pair(0, 16 * k + 8), pair(1, 16 * k + 8)};
    }

    __device__ void attend(const PageRows<kWidth>& rows, int page) {
        float scores[kCell / 8][4] = {};
#pragma unroll
        for (int k = 0; k < kSteps; ++k) {
#pragma unroll
            for (int n = 0; n < kCell / 16; ++n) {
                const HalfMatrices keys = load_matrices(&rows.keys[16 * n][16 * k], kWidth + 8);
                multiply_add(scores[2 * n], queries_[k], keys.x, keys.y);
                multiply_add(scores[2 * n + 1], queries_[k], keys.z, keys.w);
            }
        }
        soften(scores, page);
#pragma unroll
        for (int k = 0; k < kCell / 16; ++k) {
            const HalfMatrices weights{half_pair({scores[2 * k][0], scores[2 * k][1]}),
                                       half_pair({scores[2 * k][2], scores[2 * k][3]}),
                                       half_pair({scores[2 * k + 1][0], scores[2 * k + 1][1]}),
                                       half_pair({scores[2 * k + 1][2], scores[2 * k + 1][3]})};
#pragma unroll
            for (int n = 0; n < kSteps; ++n) {
                const HalfMatrices values = load_transposed(&rows.values[16 * k][16 * n], kWidth + 8);
                multiply_add(values_[2 * n], weights, values.x, values.y);
                multiply_add(values_[2 * n + 1], weights, values.z, values.w);
            }
        }
    }

    /// To [kCell][kWidth].
    __device__ void finish(float (*results)[kWidth]) {
#pragma unroll
        for (int down = 0; down < 2; ++down) {
            float sum = sums_[down];
            sum = __fadd_rn(sum, __shfl_xor_sync(kFullWarp, sum, 1));
            sum = __fadd_rn(sum, __shfl_xor_sync(kFullWarp, sum, 2));
            float factor = 1.0f;
            if (args_.sinks != nullptr) {
                const float sink = args_.sinks[head_];
                const float maximum = __fmul_rn(maxima_[down], args_.scale);
                const float joint = fmaxf(maximum, sink);
                factor = law_exp(__fsub_rn(maximum, joint));
                sum = __fmaf_rn(sum, factor, law_exp(__fsub_rn(sink, joint)));
            }
            factor = __fdiv_rn(factor, sum);
#pragma unroll
            for (int n = 0; n < 2 * kSteps; ++n) {
                const float2 pair{__fmul_rn(values_[n][2 * down], factor),
                                  __fmul_rn(values_[n][2 * down + 1], factor)};
                *reinterpret_cast<float2*>(&results[row_ + 8 * down][8 * n + 2 * (lane_index() % 4)]) = pair;
            }
        }
    }

  private:
    __device__ bool visible(int page, int down, int column) const {
        const int mine = cell_.number * kCell + row_ + 8 * down;
        const int position = page * kCell + column;
        return position <= mine && (args_.window == 0 || position > mine - args_.window);
    }

    __device__ void hide(float (&scores)[kCell / 8][4], int page) const {
#pragma unroll
        for (int n = 0; n < kCell / 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if (!visible(page, i / 2, 8 * n + 2 * (lane_index() % 4) + i % 2)) scores[n][i] = -INFINITY;
            }
        }
    }

    /// Scores to weights under the maximum so far; what was summed up under the one before is brought there.
    /// Maxima are those of scores that are not scaled yet.
    __device__ void soften(float (&scores)[kCell / 8][4], int page) {
        if (page == cell_.number || args_.window > 0) hide(scores, page);
        const float scale = __fmul_rn(args_.scale, kLog2E);
#pragma unroll
        for (int down = 0; down < 2; ++down) {
            float maximum = maxima_[down];
#pragma unroll
            for (int n = 0; n < kCell / 8; ++n)
                maximum = fmaxf(maximum, fmaxf(scores[n][2 * down], scores[n][2 * down + 1]));
            maximum = fmaxf(maximum, __shfl_xor_sync(kFullWarp, maximum, 1));
            maximum = fmaxf(maximum, __shfl_xor_sync(kFullWarp, maximum, 2));
            const float base =
                maximum == -INFINITY ? 0.0f : __fmul_rn(maximum, scale);  // nothing is visible yet
            const float before = exp2_of(__fmaf_rn(maxima_[down], scale, -base));
            float sum = __fmul_rn(sums_[down], before);
#pragma unroll
            for (int n = 0; n < kCell / 8; ++n) {
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    float& score = scores[n][2 * down + i];
                    score = exp2_of(__fmaf_rn(score, scale, -base));
                    sum = __fadd_rn(sum, score);
                }
            }
            maxima_[down] = maximum;
            sums_[down] = sum;
#pragma unroll
            for (int n = 0; n < 2 * kSteps; ++n) {
                values_[n][2 * down] = __fmul_rn(values_[n][2 * down], before);
                values_[n][2 * down + 1] = __fmul_rn(values_[n][2 * down + 1], before);
            }
        }
    }

    const AttentionArgs& args_;
    const Cell& cell_;
    const int row_;  ///< of the cell; the other is row_ + 8
    const int head_;
    HalfMatrices queries_[kSteps];
    float values_[2 * kSteps][4] = {};
    float maxima_[2] = {-INFINITY, -INFINITY};
    float sums_[2] = {};  ///< of this thread's columns
};

/// block.x: cells; block.y: groups of kHeads heads.
template <int kWidth, int kHeads>
__global__ void __launch_bounds__(kHeads* kHeadThreads, kHeads == 1 ? 3 : 1)
    cell_kernel(const AttentionArgs args, const PromptCells cells) {
    await_previous();
    extern __shared__ uint4 shared_units[];
    auto& shared = *reinterpret_cast<CellShared<kWidth, kHeads>*>(shared_units);
    const int head = static_cast<int>(blockIdx.y) * kHeads + warp_index() / kHeadWarps;
    const Cell cell =
        cell_of(args, cells, static_cast<int>(blockIdx.y) * kHeads / (args.heads / args.kv_heads));
    stage_page(args, cell, cell.first_page, shared.pages[cell.first_page % 2]);
    QueryTile<kWidth> tile(args, cell, head);
    for (int page = cell.first_page; page <= cell.number; ++page) {
        if (page < cell.number) {
            stage_page(args, cell, page + 1, shared.pages[(page + 1) % 2]);
            await_copies_but<1>();
        } else {
            await_copies();
        }
        __syncthreads();
        tile.attend(shared.pages[page % 2], page);
        __syncthreads();
    }
    float(*results)[kWidth] = shared.results[warp_index() / kHeadWarps];
    tile.finish(results);
    __syncwarp();
    for (int r = 0; r < kWarpQueries; ++r) {
        const int row = warp_index() % kHeadWarps * kWarpQueries + r;
        const std::int64_t token = cell.first_row + row;
#pragma unroll
        for (int i = lane_index(); i < kWidth; i += 32) {
            const int column = head * kWidth + i;
            const float value = results[row][i];
            args.out[token * args.out_stride + column] = value;
            if (args.quantised.quants != nullptr) store_group(args.quantised, token, column / 32, value);
        }
    }
}

template <int kWidth, int kHeads>
void launch(const AttentionArgs& args, const PromptCells& cells, StreamHandle stream) {
    const dim3 grid(static_cast<unsigned>(cells.count), static_cast<unsigned>(args.heads / kHeads));
    launch("attention of a prompt's cells", cell_kernel<kWidth, kHeads>,
           {grid, kHeads * kHeadThreads, sizeof(CellShared<kWidth, kHeads>)}, stream, args, cells);
}

template <int kWidth>
void launch_width(const AttentionArgs& args, const PromptCells& cells, StreamHandle stream) {
    if (args.heads / args.kv_heads % 2 == 0) return launch<kWidth, 2>(args, cells, stream);
    launch<kWidth, 1>(args, cells, stream);
}

/// Rows that start on whole units, where they are copied as they are.
bool well_laid(const CachePages& cache, const PagePartView& part) {
    if (part.type == cpu::CacheType::Q8_0) return true;
    return part.type == cpu::CacheType::F16 &&
           (cache.page_bytes | part.offset | part.row_bytes | part.head_bytes) % 16 == 0;
}

}  // namespace

bool attends_in_cells(const AttentionArgs& args) {
    const std::int32_t width = args.key_width;
    return has_half_matrices() && width == args.value_width && (width == 64 || width == 96 || width == 128) &&
           well_laid(args.cache, args.cache.keys) && well_laid(args.cache, args.cache.values);
}

void attention_of_cells(const AttentionArgs& args, const PromptCells& cells, StreamHandle stream) {
    switch (args.key_width) {
        case 64:
            return launch_width<64>(args, cells, stream);
        case 96:
            return launch_width<96>(args, cells, stream);
        default:
            return launch_width<128>(args, cells, stream);
    }
}

}  // namespace coterie::cuda
