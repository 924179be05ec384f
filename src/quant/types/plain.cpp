#include "quant/types/plain.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "quant/half.h"

namespace coterie::plain {
namespace {

template <typename Stored>
Stored load(const std::byte* row, std::int64_t index) {
    Stored stored;
    std::memcpy(&stored, row + index * static_cast<std::int64_t>(sizeof(Stored)), sizeof(Stored));
    return stored;
}

template <typename Number>
void decode_numbers(const std::byte* row, std::int64_t values, float* out) {
    for (std::int64_t i = 0; i < values; ++i) out[i] = static_cast<float>(load<Number>(row, i));
}

using Lanes = std::array<float, kGroupValues>;

float sum_of_lanes(Lanes& lanes) {
    for (std::size_t width = kGroupValues / 2; width > 0; width /= 2) {
        for (std::size_t l = 0; l < width; ++l) lanes[l] += lanes[l + width];
    }
    return lanes[0];
}

/// `weight_bytes` is the size of one weight in the row.
template <typename Decode>
float lane_dot(const std::byte* row, std::int64_t weight_bytes, const ActivationRow& activation,
               Decode decode) {
    Lanes lanes{};
    for (std::int64_t begin = 0; begin < activation.columns; begin += kGroupValues) {
        Lanes weights{};  // what the row does not fill stays +0, as the law wants
        decode(row + begin * weight_bytes, std::min(kGroupValues, activation.columns - begin),
               weights.data());
        for (std::size_t l = 0; l < lanes.size(); ++l) {
            lanes[l] =
                std::fma(weights[l], activation.values[begin + static_cast<std::int64_t>(l)], lanes[l]);
        }
    }
    return sum_of_lanes(lanes);
}

}  // namespace

void decode_f32(const std::byte* row, std::int64_t values, float* out) {
    if (values > 0) std::memcpy(out, row, static_cast<std::size_t>(values) * sizeof(float));
}

void decode_f16(const std::byte* row, std::int64_t values, float* out) {
    for (std::int64_t i = 0; i < values; ++i) out[i] = f16_to_f32(load<std::uint16_t>(row, i));
}

void decode_bf16(const std::byte* row, std::int64_t values, float* out) {
    for (std::int64_t i = 0; i < values; ++i) out[i] = bf16_to_f32(load<std::uint16_t>(row, i));
}

void decode_f64(const std::byte* row, std::int64_t values, float* out) {
    decode_numbers<double>(row, values, out);
}
void decode_i8(const std::byte* row, std::int64_t values, float* out) {
    decode_numbers<std::int8_t>(row, values, out);
}
void decode_i16(const std::byte* row, std::int64_t values, float* out) {
    decode_numbers<std::int16_t>(row, values, out);
}
void decode_i32(const std::byte* row, std::int64_t values, float* out) {
    decode_numbers<std::int32_t>(row, values, out);
}
void decode_i64(const std::byte* row, std::int64_t values, float* out) {
    decode_numbers<std::int64_t>(row, values, out);
}

float dot_f32(const std::byte* row, const ActivationRow& activation) {
    return lane_dot(row, 4, activation, decode_f32);
}
float dot_f16(const std::byte* row, const ActivationRow& activation) {
    return lane_dot(row, 2, activation, decode_f16);
}
float dot_bf16(const std::byte* row, const ActivationRow& activation) {
    return lane_dot(row, 2, activation, decode_bf16);
}

}  // namespace coterie::plain
