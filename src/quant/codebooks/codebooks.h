#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

/// The codebooks of the IQ1, IQ2 and IQ3 types, expanded to one signed byte a value.
namespace coterie::blocks {

template <std::size_t kEntries, std::size_t kLength>
using Codebook = std::array<std::array<std::int8_t, kLength>, kEntries>;

extern const Codebook<256, 8> kIq2XxsCodebook;  ///< magnitudes 8, 25, 43
extern const Codebook<512, 8> kIq2XsCodebook;   ///< magnitudes 8, 25, 43
extern const Codebook<1024, 8> kIq2SCodebook;   ///< magnitudes 8, 25, 43
extern const Codebook<256, 4> kIq3XxsCodebook;  ///< magnitudes 4, 12, 20, 28, 36, 44, 52, 62
extern const Codebook<512, 4> kIq3SCodebook;    ///< odd magnitudes 1 to 15
extern const Codebook<2048, 8> kIq1Codebook;    ///< -1, 0, 1

/// Eight sign bits from seven stored ones: the eighth makes the number of set bits even.
constexpr std::uint8_t even_signs(std::uint32_t stored) {
    return static_cast<std::uint8_t>(stored | static_cast<std::uint32_t>(std::popcount(stored) & 1) << 7);
}

/// Writes a codebook entry, value i negated where bit i of `signs` is set.
template <std::size_t kLength>
void write_signed(const std::array<std::int8_t, kLength>& entry, std::uint8_t signs, std::int8_t* out) {
    for (std::size_t i = 0; i < kLength; ++i) {
        out[i] = static_cast<std::int8_t>(((signs >> i) & 1) != 0 ? -entry[i] : entry[i]);
    }
}

}  // namespace coterie::blocks
