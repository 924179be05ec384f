#include "quant/quantise.h"

#include <cstring>

#include "base/error.h"
#include "quant/half.h"
#include "quant/quantisers/block_quantisers.h"

namespace coterie {
namespace {

using RowQuantiser = void (*)(const float* values, std::int64_t columns, std::byte* out);

template <typename Block>
void quantise_blocks(const float* values, std::int64_t columns, std::byte* out) {
    for (std::int64_t i = 0; i < columns / Block::kValues; ++i) {
        Block block;
        blocks::quantise(values + i * Block::kValues, block);
        std::memcpy(out + i * static_cast<std::int64_t>(sizeof(Block)), &block, sizeof(Block));
    }
}

template <std::uint16_t (*kConvert)(float)>
void convert_to_16_bits(const float* values, std::int64_t columns, std::byte* out) {
    for (std::int64_t i = 0; i < columns; ++i) {
        const std::uint16_t converted = kConvert(values[i]);
        std::memcpy(out + 2 * i, &converted, 2);
    }
}

void copy_f32(const float* values, std::int64_t columns, std::byte* out) {
    std::memcpy(out, values, static_cast<std::size_t>(columns) * sizeof(float));
}

RowQuantiser find_quantiser(DataType type) {
    switch (type) {
        case DataType::F32:
            return copy_f32;
        case DataType::F16:
            return convert_to_16_bits<f32_to_f16>;
        case DataType::BF16:
            return convert_to_16_bits<f32_to_bf16>;
        case DataType::Q4_0:
            return quantise_blocks<blocks::Q4_0>;
        case DataType::Q4_1:
            return quantise_blocks<blocks::Q4_1>;
        case DataType::Q5_0:
            return quantise_blocks<blocks::Q5_0>;
        case DataType::Q5_1:
            return quantise_blocks<blocks::Q5_1>;
        case DataType::Q8_0:
            return quantise_blocks<blocks::Q8_0>;
        case DataType::Q2_K:
            return quantise_blocks<blocks::Q2_K>;
        case DataType::Q3_K:
            return quantise_blocks<blocks::Q3_K>;
        case DataType::Q4_K:
            return quantise_blocks<blocks::Q4_K>;
        case DataType::Q5_K:
            return quantise_blocks<blocks::Q5_K>;
        case DataType::Q6_K:
            return quantise_blocks<blocks::Q6_K>;
        case DataType::IQ4_NL:
            return quantise_blocks<blocks::IQ4_NL>;
        case DataType::IQ4_XS:
            return quantise_blocks<blocks::IQ4_XS>;
        case DataType::MXFP4:
            return quantise_blocks<blocks::MXFP4>;
        default:
            return nullptr;
    }
}

}  // namespace

bool can_quantise(DataType type) { return find_quantiser(type) != nullptr; }

void quantise_row(DataType type, const float* values, std::int64_t columns, std::byte* out) {
    const RowQuantiser quantiser = find_quantiser(type);
    COTERIE_CHECK(quantiser != nullptr);
    COTERIE_CHECK(columns % traits(type).block_values == 0);
    quantiser(values, columns, out);
}

}  // namespace coterie
