#pragma once

#include <cstdint>

#include "kernels/cpu/kernels.h"
#include "kernels/cuda/row_ops.h"

/// Attention over pages of 64 positions on the device, bit for bit src/kernels/reference/attention.cpp.
namespace coterie::cuda {

/// Keys or values of one layer within every page (kv_cache/state_layout.h).
struct PagePartView {
    std::uint64_t offset = 0;
    std::uint64_t row_bytes = 0;
    std::uint64_t head_bytes = 0;
    cpu::CacheType type = cpu::CacheType::F16;
};

/// Where the tokens of a step stand in their sequences. All arrays are the device's.
struct TokenPlaces {
    const std::int32_t* positions = nullptr;  ///< [tokens]
    const std::int32_t* sequences = nullptr;  ///< [tokens]: row of `pages`
    const std::uint32_t* pages = nullptr;     ///< [sequences][page_stride]: numbers of pages in the pool
    std::int32_t page_stride = 0;
    const std::uint8_t* in_cells =
        nullptr;  ///< [tokens]: whether it is in one of the step's PromptCells; null: none
};

/// Cells of 64 positions that a step holds whole, each of one sequence.
struct PromptCells {
    const std::int32_t* first_rows = nullptr;  ///< [count]: of position 0, 64, 128 ...; the others follow
    std::int32_t count = 0;
};

struct CachePages {
    std::byte* base = nullptr;  ///< of the pool
    std::uint64_t page_bytes = 0;
    PagePartView keys;
    PagePartView values;
};

/// Per head of queries and keys: a norm where there is one, then a rotation; keys and values are then stored.
struct AttentionInputs {
    Rows queries;  ///< [heads * key_width], changed
    Rows keys;     ///< [kv_heads * key_width], read
    Rows values;   ///< [kv_heads * value_width], read
    std::int32_t heads = 0;
    std::int32_t kv_heads = 0;
    std::int32_t key_width = 0;    ///< at most kWidestHead
    std::int32_t value_width = 0;  ///< at most kWidestHead
    const float* query_norm = nullptr;
    const float* key_norm = nullptr;
    float query_epsilon = 0.0f;
    float key_epsilon = 0.0f;
    RotationStyle style = RotationStyle::Halves;
    std::int32_t query_pairs = 0;  ///< 0: not rotated
    std::int32_t key_pairs = 0;
    const float* cosines = nullptr;  ///< [tokens][pairs]
    const float* sines = nullptr;
    TokenPlaces places;
    CachePages cache;
};
inline constexpr std::int32_t kWidestHead = 256;
void store_attention_inputs(const AttentionInputs& args, StreamHandle stream);

struct AttentionArgs {
    Rows queries;
    std::int32_t heads = 0;
    std::int32_t kv_heads = 0;
    std::int32_t key_width = 0;
    std::int32_t value_width = 0;
    float scale = 0.0f;
    std::int32_t window = 0;       ///< positions visible, the query's own included; 0: all
    const float* sinks = nullptr;  ///< [heads] or null
    TokenPlaces places;
    CachePages cache;
    float* out = nullptr;  ///< [tokens][out_stride]
    std::int64_t out_stride = 0;
    ActivationBuffer quantised;  ///< of out, where value_width is a multiple of 32; else it has no quants
    /// [tokens][blocks of heads], zero before and after: the last page's block joins the pages where they are
    /// few.
    std::uint32_t* arrivals = nullptr;
    float* partials =
        nullptr;  ///< [tokens][heads][pages][value_width + 2], or null: one block goes through all pages
    std::int32_t pages = 0;  ///< pages of the longest sequence that the kernels allow for
};
void attention(const AttentionArgs& args, StreamHandle stream);
/// `store_attention_inputs`, then `attention`; for a single token in one kernel where that is possible, which
/// then leaves inputs.queries as they are.
void attention_of_step(const AttentionInputs& inputs, const AttentionArgs& args, StreamHandle stream);
/// Whether `attention_of_cells` takes such heads and caches on the current GPU.
bool attends_in_cells(const AttentionArgs& args);
/// Of the cells' tokens alone, on tensor cores: not bit for bit the law's (docs/adr/0008-prompt-cells.md),
/// but a row's result depends on nothing but the row, its position and what the cache holds.
void attention_of_cells(const AttentionArgs& args, const PromptCells& cells, StreamHandle stream);
/// The same as `attention` without partials, for many tokens but those in cells, of which neighbours are of
/// one sequence for the most part.
void prompt_attention(const AttentionArgs& args, StreamHandle stream);

}  // namespace coterie::cuda
