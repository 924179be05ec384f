#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/activation.h"
#include "quant/data_type.h"

/// CPU kernels: pointers, sizes and nothing else. One table of functions per instruction set, chosen once at
/// start; every table gives the same bits (docs/canonical-arithmetic.md). No function here allocates, locks
/// or throws.
namespace coterie::cpu {

enum class InstructionSet { Scalar, Avx2, Avx512 };

/// Rows [0, rows) of a weight matrix times a few tokens: out[t * out_token_stride + r] = dot(row r,
/// activations[t]). Weight bytes may start at any address; each is read from memory once however many tokens
/// there are.
struct MatmulArgs {
    const std::byte* weights;
    std::int64_t row_bytes;  ///< distance between rows
    std::int64_t columns;
    std::int64_t rows;
    const ActivationRow* activations;  ///< [tokens]
    std::int64_t tokens;
    float* out;
    std::int64_t out_token_stride;  ///< in floats
};
using MatmulFunction = void (*)(const MatmulArgs&);

/// The element type of a KV cache.
enum class CacheType { F32, F16, Q8_0 };

/// Attention of one token's query heads that share one key-value head, over positions [first, last].
/// Pages hold 64 positions on a fixed grid from position 0; position p is row p % 64 of page p / 64.
struct AttentionArgs {
    const float* queries;  ///< [heads][key_width]
    std::int64_t heads;
    std::int64_t key_width;               ///< elements per key
    std::int64_t value_width;             ///< elements per value
    const std::byte* const* key_pages;    ///< [pages]: this head's first key in each page
    const std::byte* const* value_pages;  ///< [pages]
    std::int64_t key_stride;              ///< bytes between positions
    std::int64_t value_stride;
    CacheType key_type;
    CacheType value_type;
    std::int64_t first;  ///< first visible position (> 0 with a sliding window)
    std::int64_t last;   ///< the query's own position
    float scale;
    const float* sinks;       ///< [heads] or null
    float* out;               ///< [heads][value_width]
    std::int64_t out_stride;  ///< floats between heads of `out`
};

/// One value head's step of the gated delta rule; `state` is [value_dim][key_dim] (value-major) and is
/// updated. state <- exp(log_decay) state; d = beta (v - state k); state <- state + d k^T; out = state q *
/// scale.
struct DeltaRuleArgs {
    float* state;
    const float* query;  ///< [key_dim], already normalised
    const float* key;    ///< [key_dim], already normalised
    const float* value;  ///< [value_dim]
    float log_decay;
    float beta;
    float scale;
    std::int64_t key_dim;
    std::int64_t value_dim;
    float* out;  ///< [value_dim]
};

/// Everything the engine calls, resolved for one instruction set.
struct KernelTable {
    InstructionSet instruction_set;
    std::string_view name;  ///< "scalar", "avx2", "avx512"

    /// Indexed by type id; null where the type has no dot product.
    std::array<MatmulFunction, kDataTypeIds> matmul;

    void (*quantise_activation)(const float* values, std::int64_t columns, const QuantisedActivation& out);

    /// out = x / sqrt(mean(x^2) + epsilon) * weight; weight null means 1. `out` may be `x`.
    void (*rms_norm)(const float* x, const float* weight, std::int64_t n, float epsilon, float* out);
    /// out = x / sqrt(sum(x^2) + epsilon).
    void (*l2_norm)(const float* x, std::int64_t n, float epsilon, float* out);

    void (*add)(const float* a, const float* b, std::int64_t n, float* out);
    /// out = fma(factor, x, out)
    void (*add_scaled)(const float* x, float factor, std::int64_t n, float* out);
    void (*multiply)(const float* a, const float* b, std::int64_t n, float* out);
    /// out = silu(gate) * up
    void (*swiglu)(const float* gate, const float* up, std::int64_t n, float* out);
    /// gpt-oss: g = min(gate, 7), u = clamp(up, -7, 7): out = g * sigmoid(1.702 g) * (u + 1)
    void (*swiglu_oai)(const float* gate, const float* up, std::int64_t n, float* out);
    void (*silu)(const float* x, std::int64_t n, float* out);
    void (*sigmoid)(const float* x, std::int64_t n, float* out);
    /// log(1 + exp(x)), x above 20 unchanged.
    void (*softplus)(const float* x, std::int64_t n, float* out);
    void (*softmax)(const float* x, std::int64_t n, float* out);
    /// Lane-ordered dot product of two binary32 vectors.
    float (*dot_f32)(const float* a, const float* b, std::int64_t n);

    /// Rotates the first 2 * pairs values of a head in place; cosines and sines are [pairs].
    void (*rope_adjacent)(float* head, const float* cosines, const float* sines, std::int64_t pairs);
    void (*rope_halves)(float* head, const float* cosines, const float* sines, std::int64_t pairs);

    /// Converts n values to a KV cache row. Q8_0 rows hold blocks of 32 as in GGUF; n is a multiple of 32.
    void (*store_cache)(CacheType type, const float* x, std::int64_t n, std::byte* out);
    void (*attention)(const AttentionArgs&);
    void (*delta_rule)(const DeltaRuleArgs&);
};

/// The table in use: the best that this machine has, unless forced. Thread-safe.
const KernelTable& kernels();

/// Null where this machine lacks the instruction set.
const KernelTable* kernels_for(InstructionSet set);

/// Makes `kernels()` return that set's table; for tests and `--cpu-isa`. Throws Unsupported where the machine
/// lacks it.
void force_instruction_set(InstructionSet set);

/// Bytes of a cache row of n values.
std::int64_t cache_row_bytes(CacheType type, std::int64_t n);

}  // namespace coterie::cpu
