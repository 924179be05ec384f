#include "quant/data_type.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include "base/checked.h"
#include "base/error.h"
#include "quant/codebooks/iq1.h"
#include "quant/codebooks/iq2.h"
#include "quant/codebooks/iq3.h"
#include "quant/types/few_bits.h"
#include "quant/types/four_bit_tables.h"
#include "quant/types/k_quants.h"
#include "quant/types/legacy.h"
#include "quant/types/plain.h"
#include "quant/types/rows.h"

namespace coterie {
namespace {

/// A type whose rows hold single numbers; `dot` is null where it is never a weight of a product.
constexpr DataTypeTraits number(DataType type, std::string_view name, std::int64_t bytes,
                                DecodeFunction decode, DotFunction dot) {
    return {type, name, 1, bytes, decode, dot, false};
}

template <typename Block>
constexpr DataTypeTraits weights(DataType type, std::string_view name) {
    return {
        type, name, Block::kValues, sizeof(Block), blocks::decode_row<Block>, blocks::canonical_dot<Block>,
        true};
}

/// A block type that other engines use for activations: it is read, never multiplied.
template <typename Block>
constexpr DataTypeTraits activations(DataType type, std::string_view name) {
    return {type, name, Block::kValues, sizeof(Block), blocks::decode_row<Block>, nullptr, false};
}

using enum DataType;

constexpr std::array kTypes = {
    number(F32, "F32", 4, plain::decode_f32, plain::dot_f32),
    number(F16, "F16", 2, plain::decode_f16, plain::dot_f16),
    weights<blocks::Q4_0>(Q4_0, "Q4_0"),
    weights<blocks::Q4_1>(Q4_1, "Q4_1"),
    weights<blocks::Q5_0>(Q5_0, "Q5_0"),
    weights<blocks::Q5_1>(Q5_1, "Q5_1"),
    weights<blocks::Q8_0>(Q8_0, "Q8_0"),
    activations<blocks::Q8_1>(Q8_1, "Q8_1"),
    weights<blocks::Q2_K>(Q2_K, "Q2_K"),
    weights<blocks::Q3_K>(Q3_K, "Q3_K"),
    weights<blocks::Q4_K>(Q4_K, "Q4_K"),
    weights<blocks::Q5_K>(Q5_K, "Q5_K"),
    weights<blocks::Q6_K>(Q6_K, "Q6_K"),
    activations<blocks::Q8_K>(Q8_K, "Q8_K"),
    weights<blocks::IQ2_XXS>(IQ2_XXS, "IQ2_XXS"),
    weights<blocks::IQ2_XS>(IQ2_XS, "IQ2_XS"),
    weights<blocks::IQ3_XXS>(IQ3_XXS, "IQ3_XXS"),
    weights<blocks::IQ1_S>(IQ1_S, "IQ1_S"),
    weights<blocks::IQ4_NL>(IQ4_NL, "IQ4_NL"),
    weights<blocks::IQ3_S>(IQ3_S, "IQ3_S"),
    weights<blocks::IQ2_S>(IQ2_S, "IQ2_S"),
    weights<blocks::IQ4_XS>(IQ4_XS, "IQ4_XS"),
    number(I8, "I8", 1, plain::decode_i8, nullptr),
    number(I16, "I16", 2, plain::decode_i16, nullptr),
    number(I32, "I32", 4, plain::decode_i32, nullptr),
    number(I64, "I64", 8, plain::decode_i64, nullptr),
    number(F64, "F64", 8, plain::decode_f64, nullptr),
    weights<blocks::IQ1_M>(IQ1_M, "IQ1_M"),
    number(BF16, "BF16", 2, plain::decode_bf16, plain::dot_bf16),
    weights<blocks::TQ1_0>(TQ1_0, "TQ1_0"),
    weights<blocks::TQ2_0>(TQ2_0, "TQ2_0"),
    weights<blocks::MXFP4>(MXFP4, "MXFP4"),
    weights<blocks::NVFP4>(NVFP4, "NVFP4"),
    weights<blocks::Q1_0>(Q1_0, "Q1_0"),
    weights<blocks::Q2_0>(Q2_0, "Q2_0"),
};

/// Position in kTypes by id, -1 where the id is unknown.
constexpr std::array<int, kDataTypeIds> kPositions = [] {
    std::array<int, kDataTypeIds> positions{};
    positions.fill(-1);
    for (std::size_t i = 0; i < kTypes.size(); ++i) {
        positions[static_cast<std::size_t>(kTypes[i].type)] = static_cast<int>(i);
    }
    return positions;
}();

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::toupper(x) == std::toupper(y); });
}

}  // namespace

std::span<const DataTypeTraits> all_data_types() { return kTypes; }

const DataTypeTraits* find_data_type(std::uint32_t id) {
    if (id >= kDataTypeIds || kPositions[id] < 0) return nullptr;
    return &kTypes[static_cast<std::size_t>(kPositions[id])];
}

const DataTypeTraits* find_data_type(std::string_view name) {
    const auto found = std::find_if(kTypes.begin(), kTypes.end(), [name](const DataTypeTraits& candidate) {
        return equal_ignoring_case(candidate.name, name);
    });
    return found == kTypes.end() ? nullptr : &*found;
}

const DataTypeTraits& traits(DataType type) {
    const DataTypeTraits* found = find_data_type(static_cast<std::uint32_t>(type));
    COTERIE_CHECK(found != nullptr);
    return *found;
}

std::optional<std::int64_t> row_bytes(DataType type, std::int64_t columns) {
    const DataTypeTraits& type_traits = traits(type);
    if (columns < 0 || columns % type_traits.block_values != 0) return std::nullopt;
    const auto blocks = static_cast<std::uint64_t>(columns / type_traits.block_values);
    const auto bytes = checked_multiply(blocks, static_cast<std::uint64_t>(type_traits.block_bytes));
    if (!bytes || *bytes > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
    return static_cast<std::int64_t>(*bytes);
}

}  // namespace coterie
