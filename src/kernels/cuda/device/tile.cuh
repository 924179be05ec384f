#pragma once

#include "kernels/cuda/activations.h"
#include "kernels/cuda/device/async_copy.cuh"
#include "kernels/cuda/device/dot.cuh"
#include "kernels/cuda/device/tile_terms.cuh"

/// Products of a tile of rows with a tile of tokens on tensor cores, by the law of single products.
///
/// A block walks the rows in slabs of four groups, one for each of the law's accumulators. While a slab is
/// multiplied the next one's bytes are on their way; then it is decoded beside it in shared memory, once for
/// all tokens of the tile.
namespace coterie::cuda {

inline constexpr int kTileThreads = 256;
inline constexpr int kSlabGroups = 4;
inline constexpr int kSlabBytes = 32 * kSlabGroups;

/// A warp owns 32 rows and 16 tokens; a block's eight warps stand in rows of four or of two.
template <int kRowWarps, int kTokenWarps>
struct TileShape {
    static_assert(kRowWarps * kTokenWarps == kTileThreads / 32);
    static constexpr int kRows = 32 * kRowWarps;
    static constexpr int kTokens = 16 * kTokenWarps;
    static constexpr int kWarpsOfRows = kRowWarps;
};
using SquareTile = TileShape<2, 4>;
using NarrowTile = TileShape<4, 2>;  ///< few tokens

/// A slab in shared memory. Codes and quants are rows of eight pieces of 16 bytes, two a group; piece i lies
/// at i ^ (row % 8), so that eight rows' pieces of one number are in eight different places of the banks.
template <typename Type, typename Shape>
struct __align__(16) Slab {
    std::uint8_t codes[Shape::kRows][kSlabBytes];
    std::uint8_t quants[Shape::kTokens][kSlabBytes];
    /// Four threads write a row's or a token's four groups, which so many bytes more keep apart in the banks.
    static constexpr int kPad = 4;
    RowTerm<Type::kForm> rows[kSlabGroups][Shape::kRows + kPad];
    float2 tokens[kSlabGroups][Shape::kTokens + kPad];  ///< scale, scaled sum
    short2 half_sums[Type::kForm == Form::HalfMinima ? kSlabGroups : 1]
                    [Type::kForm == Form::HalfMinima ? Shape::kTokens + kPad : 2];
};

template <typename Type, typename Shape>
struct TileMemory {
    Slab<Type, Shape> slabs[2];
    std::uint32_t inputs[Shape::kTokens];  ///< of the row of x that a token reads, the first group's number
};

__device__ __forceinline__ int place_of(int row, int piece) { return 16 * (piece ^ (row & 7)); }

struct TileRows {
    const std::uint8_t* weights;  ///< of the tile's first row
    std::int64_t row_bytes;
    int count;        ///< rows that exist
    unsigned groups;  ///< of a row
};

template <typename Type, typename Shape>
class Tile {
  public:
    static constexpr Form kForm = Type::kForm;
    using Memory = TileMemory<Type, Shape>;

    /// memory.inputs is filled for all tokens of the shape; `tokens` of them are wanted.
    __device__ Tile(Memory& memory, const TileRows& rows, const ActivationBuffer& x, int tokens)
        : memory_(memory), rows_(rows), x_(x) {
        // Warps 0 to 3 have an issuer each, as 4 to 7 have: the rows of few tokens, at a tile's end, are
        // shared out over several of them.
        const int warp = static_cast<int>(threadIdx.x) / 32;
        first_row_ = 32 * (warp % Shape::kWarpsOfRows);
        first_token_ = 8 * kTokenTiles * (warp / Shape::kWarpsOfRows);
        tokens_ = first_row_ < rows.count ? tokens - first_token_ : 0;
    }

    __device__ void multiply() {
        const unsigned slabs = (rows_.groups + kSlabGroups - 1) / kSlabGroups;
        bring_tokens(0, memory_.slabs[0]);
        store_rows(fetch_rows(0), 0);
        for (unsigned s = 0; s < slabs; ++s) {
            await_copies();
            __syncthreads();
            // The next slab's weights are on their way to the first-level cache while this one is multiplied.
            const bool more = s + 1 < slabs;
            Touched next{};
            if (more) {
                bring_tokens(s + 1, memory_.slabs[(s + 1) & 1]);
                next = touch_rows(s + 1);
            }
            const unsigned left = rows_.groups - s * kSlabGroups;
            if (tokens_ > 0) {
                if (Type::kGroups % kSlabGroups != 0 && left < kSlabGroups) {
                    add_slab<true>(memory_.slabs[s & 1], left);
                } else {
                    add_slab<false>(memory_.slabs[s & 1], kSlabGroups);
                }
            }
            next.keep();
            if (more) store_rows(fetch_rows(s + 1), s + 1);
        }
    }

    /// store(row, token, product) for every output of the lane, rows and tokens counted from the tile's
    /// first; some are past the end.
    template <typename Store>
    __device__ void finish(Store store) const {
        if (tokens_ <= 0) return;
        const int lane = lane_index();
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m)
#pragma unroll
            for (int n = 0; n < kTokenTiles; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    float total = 0.0f;
#pragma unroll
                    for (int a = 0; a < kSlabGroups; ++a) total = __fadd_rn(total, sums_[a][m][n][i]);
                    store(first_row_ + 16 * m + lane / 4 + 8 * (i / 2),
                          first_token_ + 8 * n + 2 * (lane & 3) + (i & 1), total);
                }
    }

  private:
    static constexpr int kRowTiles = 2;
    static constexpr int kTokenTiles = 2;

    static constexpr int kCodeStep = kTileThreads / 8;
    static constexpr int kScaleStep = kTileThreads / kSlabGroups;
    static_assert(Shape::kRows % kCodeStep == 0 && Shape::kRows % kScaleStep == 0);
    static_assert(Shape::kTokens % kCodeStep == 0);

    /// What a slab's groups of a row lie in: whole blocks.
    static constexpr int kSlabBlockBytes =
        Type::kBlockBytes * (Type::kGroups < kSlabGroups ? kSlabGroups / Type::kGroups : 1);
    static constexpr int kSectorBytes = 32;
    static constexpr int kTouches = (kSlabBlockBytes + 4 * kSectorBytes - 1) / (4 * kSectorBytes);

    /// Words that were read for their sectors' sake. They must not be waited for before `keep`.
    struct Touched {
        std::uint32_t words[Shape::kRows / kScaleStep][kTouches];
        __device__ __forceinline__ void keep() const {
#pragma unroll
            for (const auto& row : words)
#pragma unroll
                for (const std::uint32_t word : row) asm volatile("" ::"r"(word));
        }
    };

    /// A thread's share of a slab's weights: eight threads a row, one a piece; then four, one a group.
    struct Fetched {
        uint4 codes[Shape::kRows / kCodeStep];
        RowTerm<kForm> terms[Shape::kRows / kScaleStep];
    };

    /// Eight threads a token, one a piece; then four, one a group. Groups past the row's end are read too:
    /// rows of x are stored in fours of groups.
    __device__ void bring_tokens(unsigned slab, Slab<Type, Shape>& to) const {
        const int thread = static_cast<int>(threadIdx.x);
        const unsigned first_group = slab * kSlabGroups;
        const int piece = thread % 8;
#pragma unroll
        for (int i = 0; i < Shape::kTokens / kCodeStep; ++i) {
            const int token = thread / 8 + i * kCodeStep;
            const std::size_t group = memory_.inputs[token] + first_group;
            copy_to_shared<16>(&to.quants[token][place_of(token, piece)],
                               x_.quants + 32 * group + 16 * piece);
        }
        const int g = thread % kSlabGroups;
        constexpr int kSteps = (Shape::kTokens + kScaleStep - 1) / kScaleStep;
#pragma unroll
        for (int i = 0; i < kSteps; ++i) {
            const int token = thread / kSlabGroups + i * kScaleStep;
            if (Shape::kTokens % kScaleStep != 0 && token >= Shape::kTokens) break;
            const std::size_t group = memory_.inputs[token] + first_group + static_cast<unsigned>(g);
            copy_to_shared<8>(&to.tokens[g][token], x_.scales + 2 * group);
            if constexpr (kForm == Form::HalfMinima)
                copy_to_shared<4>(&to.half_sums[g][token], x_.half_sums + 2 * group);
        }
    }

    /// Where the block of a group stands in the tile's row `row`.
    __device__ const std::uint8_t* block_of(int row, unsigned group) const {
        return rows_.weights + row * rows_.row_bytes + group / Type::kGroups * Type::kBlockBytes;
    }

    /// Four threads a row, one a sector of its blocks.
    __device__ __forceinline__ Touched touch_rows(unsigned slab) const {
        Touched touched;
        const unsigned group = min(slab * kSlabGroups, rows_.groups - 1);
#pragma unroll
        for (int i = 0; i < Shape::kRows / kScaleStep; ++i) {
            const int row = min(static_cast<int>(threadIdx.x) / 4 + i * kScaleStep, rows_.count - 1);
            const std::uint8_t* blocks = block_of(row, group);
            const auto left = static_cast<int>(rows_.weights + (row + 1) * rows_.row_bytes - blocks);
            const int last = min(kSlabBlockBytes, left) - 1;
#pragma unroll
            for (int t = 0; t < kTouches; ++t) {
                const int at = min(kSectorBytes * (static_cast<int>(threadIdx.x) % 4 + 4 * t), last);
                const auto address = __cvta_generic_to_global(blocks + at) & ~std::size_t{3};
                asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(touched.words[i][t]) : "l"(address));
            }
        }
        return touched;
    }

    /// What stands for rows and groups that do not exist is arbitrary: nothing that is kept comes from it.
    __device__ __forceinline__ Fetched fetch_rows(unsigned slab) const {
        Fetched fetched;
        const int thread = static_cast<int>(threadIdx.x);
        const unsigned last = rows_.groups - 1;
        const unsigned piece = threadIdx.x % 8;
        unsigned group = min(slab * kSlabGroups + piece / 2, last);
#pragma unroll
        for (int i = 0; i < Shape::kRows / kCodeStep; ++i) {
            const int row = min(thread / 8 + i * kCodeStep, rows_.count - 1);
            fetched.codes[i] = half_words<Type>(block_of(row, group), group % Type::kGroups, piece & 1);
        }
        group = min(slab * kSlabGroups + threadIdx.x % kSlabGroups, last);
#pragma unroll
        for (int i = 0; i < Shape::kRows / kScaleStep; ++i) {
            const int row = min(thread / kSlabGroups + i * kScaleStep, rows_.count - 1);
            fetched.terms[i] = RowTerm<kForm>::of(Type::scales(block_of(row, group), group % Type::kGroups));
        }
        return fetched;
    }

    __device__ __forceinline__ void store_rows(const Fetched& fetched, unsigned slab) const {
        Slab<Type, Shape>& to = memory_.slabs[slab & 1];
        const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
        for (int i = 0; i < Shape::kRows / kCodeStep; ++i) {
            const int row = thread / 8 + i * kCodeStep;
            *reinterpret_cast<uint4*>(&to.codes[row][place_of(row, thread % 8)]) = fetched.codes[i];
        }
#pragma unroll
        for (int i = 0; i < Shape::kRows / kScaleStep; ++i)
            to.rows[thread % kSlabGroups][thread / kSlabGroups + i * kScaleStep] = fetched.terms[i];
    }

    template <bool kTail>
    __device__ __forceinline__ void add_slab(const Slab<Type, Shape>& slab, unsigned left) {
#pragma unroll
        for (unsigned g = 0; g < kSlabGroups; ++g) {
            if (kTail && g >= left) break;
            add_group(slab, static_cast<int>(g));
        }
    }

    __device__ __forceinline__ void add_group(const Slab<Type, Shape>& slab, int g) {
        const int lane = lane_index();
        uint4 codes[kRowTiles];
        RowTerm<kForm> rows[kRowTiles][2];
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m) {
            const int row = first_row_ + 16 * m;
            const int mine = row + (lane & 15);
            codes[m] = load_matrices(&slab.codes[mine][place_of(mine, 2 * g + lane / 16)]);
            rows[m][0] = slab.rows[g][row + lane / 4];
            rows[m][1] = slab.rows[g][row + lane / 4 + 8];
        }
#pragma unroll
        for (int n = 0; n < kTokenTiles; n += 2) {
            const int mine = first_token_ + 8 * n + (lane & 7) + (lane / 16) * 8;
            const uint4 quants = load_matrices(&slab.quants[mine][place_of(mine, 2 * g + (lane / 8 & 1))]);
            add_columns(slab, g, n, uint2{quants.x, quants.y}, codes, rows);
            add_columns(slab, g, n + 1, uint2{quants.z, quants.w}, codes, rows);
        }
    }

    __device__ __forceinline__ void add_columns(const Slab<Type, Shape>& slab, int g, int n, uint2 quants,
                                                const uint4 (&codes)[kRowTiles],
                                                const RowTerm<kForm> (&rows)[kRowTiles][2]) {
        TokenTerm tokens[2];
        read_tokens(slab, g, first_token_ + 8 * n + 2 * (lane_index() & 3), tokens);
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m) {
            std::uint32_t first[4];
            std::uint32_t second[4] = {};
            if constexpr (kWantsHalves<kForm>) {
                half_group_sums(first, uint2{codes[m].x, codes[m].y}, quants.x);
                half_group_sums(second, uint2{codes[m].z, codes[m].w}, quants.y);
            } else {
                group_sums(first, codes[m], quants);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float& sum = sums_[g][m][n][i];
                sum = updated<kForm>(sum, first[i], second[i], rows[m][i / 2], tokens[i & 1]);
            }
        }
    }

    __device__ __forceinline__ static void read_tokens(const Slab<Type, Shape>& slab, int g, int token,
                                                       TokenTerm (&terms)[2]) {
        const float4 both = *reinterpret_cast<const float4*>(&slab.tokens[g][token]);
        terms[0].scale = both.x, terms[0].scaled_sum = both.y;
        terms[1].scale = both.z, terms[1].scaled_sum = both.w;
        if constexpr (kForm == Form::HalfMinima) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const short2 halves = slab.half_sums[g][token + i];
                terms[i].half_sums[0] = static_cast<float>(halves.x);
                terms[i].half_sums[1] = static_cast<float>(halves.y);
            }
        }
    }

    Memory& memory_;
    const TileRows rows_;
    const ActivationBuffer& x_;
    int first_row_;
    int first_token_;
    int tokens_;  ///< wanted, from first_token_ on
    float sums_[kSlabGroups][kRowTiles][kTokenTiles][4] = {};
};

}  // namespace coterie::cuda
