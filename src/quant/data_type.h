#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "quant/activation.h"

namespace coterie {

/// The element types of GGUF tensors; the values are the ids in the file.
enum class DataType : std::uint32_t {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q8_1 = 9,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    Q8_K = 15,
    IQ2_XXS = 16,
    IQ2_XS = 17,
    IQ3_XXS = 18,
    IQ1_S = 19,
    IQ4_NL = 20,
    IQ3_S = 21,
    IQ2_S = 22,
    IQ4_XS = 23,
    I8 = 24,
    I16 = 25,
    I32 = 26,
    I64 = 27,
    F64 = 28,
    IQ1_M = 29,
    BF16 = 30,
    TQ1_0 = 34,
    TQ2_0 = 35,
    MXFP4 = 39,
    NVFP4 = 40,
    Q1_0 = 41,
    Q2_0 = 42,
};

/// One more than the largest id, for tables indexed by id.
inline constexpr std::size_t kDataTypeIds = 43;

/// Converts `values` elements of a row (a multiple of the type's block) to binary32, exactly.
using DecodeFunction = void (*)(const std::byte* row, std::int64_t values, float* out);

/// The canonical dot product of a row with an activation of `activation.columns` values
/// (docs/canonical-arithmetic.md).
using DotFunction = float (*)(const std::byte* row, const ActivationRow& activation);

/// One row of the table of types.
struct DataTypeTraits {
    DataType type;
    std::string_view name;      ///< as in file names: "Q4_K"
    std::int64_t block_values;  ///< elements per block
    std::int64_t block_bytes;
    DecodeFunction decode;
    DotFunction dot;  ///< null for types that are never weights of a product (integers, F64, Q8_1, Q8_K)

    /// Whether products use the quantised activation (true) or binary32 lanes (F32, F16, BF16).
    bool uses_quantised_activation;
};

/// All types, in ascending order of id.
std::span<const DataTypeTraits> all_data_types();

/// Null for an id that this program does not know.
const DataTypeTraits* find_data_type(std::uint32_t id);

/// Case does not matter. Null for an unknown name.
const DataTypeTraits* find_data_type(std::string_view name);

const DataTypeTraits& traits(DataType type);

/// Bytes of a row of `columns` elements; nothing when that is no whole number of blocks or overflows 63 bits.
std::optional<std::int64_t> row_bytes(DataType type, std::int64_t columns);

}  // namespace coterie
