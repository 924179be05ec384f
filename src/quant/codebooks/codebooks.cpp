#include "quant/codebooks/codebooks.h"

#include "quant/codebooks/packed_codebooks.h"

namespace coterie::blocks {
namespace {

/// Entries of 8 two-bit or 4 three-bit codes; `values` gives a code its value.
template <std::size_t kLength, std::size_t kEntries, std::size_t kCodes>
constexpr Codebook<kEntries, kLength> expand(const std::array<std::uint16_t, kEntries>& packed,
                                             const std::array<std::int8_t, kCodes>& values) {
    constexpr std::size_t kBits = kLength == 8 ? 2 : 3;
    Codebook<kEntries, kLength> codebook{};
    for (std::size_t entry = 0; entry < kEntries; ++entry) {
        for (std::size_t i = 0; i < kLength; ++i) {
            codebook[entry][i] = values.at((packed[entry] >> (kBits * i)) & ((1u << kBits) - 1));
        }
    }
    return codebook;
}

constexpr std::array<std::int8_t, 3> kIq2Magnitudes = {8, 25, 43};
constexpr std::array<std::int8_t, 8> kIq3XxsMagnitudes = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr std::array<std::int8_t, 8> kIq3SMagnitudes = {1, 3, 5, 7, 9, 11, 13, 15};
constexpr std::array<std::int8_t, 3> kIq1Values = {-1, 0, 1};

}  // namespace

// constinit: a code outside its list of values would throw, which stops the build.
constinit const Codebook<256, 8> kIq2XxsCodebook = expand<8>(kPackedIq2Xxs, kIq2Magnitudes);
constinit const Codebook<512, 8> kIq2XsCodebook = expand<8>(kPackedIq2Xs, kIq2Magnitudes);
constinit const Codebook<1024, 8> kIq2SCodebook = expand<8>(kPackedIq2S, kIq2Magnitudes);
constinit const Codebook<256, 4> kIq3XxsCodebook = expand<4>(kPackedIq3Xxs, kIq3XxsMagnitudes);
constinit const Codebook<512, 4> kIq3SCodebook = expand<4>(kPackedIq3S, kIq3SMagnitudes);
constinit const Codebook<2048, 8> kIq1Codebook = expand<8>(kPackedIq1, kIq1Values);

}  // namespace coterie::blocks
