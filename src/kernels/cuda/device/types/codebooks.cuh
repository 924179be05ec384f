#pragma once

#include "kernels/cuda/device/bits.cuh"
#include "kernels/cuda/device/group.cuh"

/// Types whose values are entries of codebooks: src/quant/codebooks/. A codebook is the device's copy of the
/// host's table, [entries][4 or 8] signed bytes, filled at start (`fill_codebook`).
namespace coterie::cuda {

template <typename Codebook>
struct IQ2_XXS {
    static constexpr int kBlockBytes = 66;
    static constexpr int kGroups = 8;
    static constexpr Form kForm = Form::Plain;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        const std::uint8_t* record = block + 2 + 8 * g;
        const std::uint32_t signs = even_signs(word_at<2>(record + 4) >> 7 * (w / 2) & 127);
        return negate_where(Codebook::word(record[w / 2], w & 1), signs >> 4 * (w & 1));
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned g) {
        const std::uint32_t s = word_at<2>(block + 6 + 8 * g) >> 28;
        return {.ds = {half_bits(half_word_at<2>(block)) * 0.125f * static_cast<float>(2 * s + 1)}};
    }
};

/// Two 4-bit scales of a group in one byte, each counting 2 s + 1 eighths.
__device__ __forceinline__ Scales eighths(std::uint32_t d, std::uint32_t pair) {
    return {.ds = {half_bits(d) * 0.125f},
            .half_scales = {static_cast<int>(2 * (pair & 15) + 1), static_cast<int>(2 * (pair >> 4) + 1)}};
}

template <typename Codebook>
struct IQ2_XS {
    static constexpr int kBlockBytes = 74;
    static constexpr int kGroups = 8;
    static constexpr Form kForm = Form::HalfScaled;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        const std::uint32_t code = half_word_at<2>(block + 2 + 8 * g + 2 * (w / 2));
        return negate_where(Codebook::word(code & 511, w & 1), even_signs(code >> 9) >> 4 * (w & 1));
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned g) {
        return eighths(half_word_at<2>(block), block[66 + g]);
    }
};

template <typename Codebook>
struct IQ2_S {
    static constexpr int kBlockBytes = 82;
    static constexpr int kGroups = 8;
    static constexpr Form kForm = Form::HalfScaled;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        const unsigned l = w / 2;
        const std::uint32_t entry = block[2 + 4 * g + l] | (std::uint32_t{block[66 + g]} >> 2 * l & 3) << 8;
        return negate_where(Codebook::word(entry, w & 1),
                            std::uint32_t{block[34 + 4 * g + l]} >> 4 * (w & 1));
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned g) {
        return eighths(half_word_at<2>(block), block[74 + g]);
    }
};

template <typename Codebook>
struct IQ3_XXS {
    static constexpr int kBlockBytes = 98;
    static constexpr int kGroups = 8;
    static constexpr Form kForm = Form::Plain;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        const std::uint32_t signs = even_signs(word_at<2>(block + 66 + 4 * g) >> 7 * (w / 2) & 127);
        return negate_where(Codebook::word(block[2 + 8 * g + w]), signs >> 4 * (w & 1));
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned g) {
        const std::uint32_t s = word_at<2>(block + 66 + 4 * g) >> 28;
        return {.ds = {half_bits(half_word_at<2>(block)) * 0.25f * static_cast<float>(2 * s + 1)}};
    }
};

template <typename Codebook>
struct IQ3_S {
    static constexpr int kBlockBytes = 110;
    static constexpr int kGroups = 8;
    static constexpr Form kForm = Form::Plain;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        const std::uint32_t entry = block[2 + 8 * g + w] | (std::uint32_t{block[66 + g]} >> w & 1) << 8;
        return negate_where(Codebook::word(entry), std::uint32_t{block[74 + 4 * g + w / 2]} >> 4 * (w & 1));
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned g) {
        const std::uint32_t s = std::uint32_t{block[106 + g / 2]} >> 4 * (g & 1) & 15;
        return {.ds = {half_bits(half_word_at<2>(block)) * static_cast<float>(2 * s + 1)}};
    }
};

/// Entries of -1, 0, 1 as eighths, moved by +1 or -1; every byte lies between -9 and 9.
__device__ __forceinline__ std::uint32_t moved_eighths(std::uint32_t entry, bool down) {
    constexpr std::uint32_t kTops = 0x80808080;
    const std::uint32_t raised = (entry << 3 & 0xf8f8f8f8) ^ kTops;
    return (down ? raised - 0x01010101u : raised + 0x01010101u) ^ kTops;
}

template <typename Codebook>
struct IQ1_S {
    static constexpr int kBlockBytes = 50;
    static constexpr int kGroups = 8;
    static constexpr Form kForm = Form::Plain;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        const std::uint32_t high = half_word_at<2>(block + 34 + 2 * g);
        const std::uint32_t entry = block[2 + 4 * g + w / 2] | (high >> 3 * (w / 2) & 7) << 8;
        return moved_eighths(Codebook::word(entry, w & 1), high & 0x8000);
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned g) {
        const std::uint32_t s = half_word_at<2>(block + 34 + 2 * g) >> 12 & 7;
        return {.ds = {half_bits(half_word_at<2>(block)) * 0.125f * static_cast<float>(2 * s + 1)}};
    }
};

template <typename Codebook>
struct IQ1_M {
    static constexpr int kBlockBytes = 56;
    static constexpr int kGroups = 8;
    static constexpr Form kForm = Form::HalfScaled;
    __device__ static std::uint32_t word(const std::uint8_t* block, unsigned g, unsigned w) {
        const unsigned l = w / 2;
        const std::uint32_t high = std::uint32_t{block[32 + 2 * g + l / 2]} >> 4 * (l & 1) & 15;
        return moved_eighths(Codebook::word(block[4 * g + l] | (high & 7) << 8, w & 1), high & 8);
    }
    __device__ static Scales scales(const std::uint8_t* block, unsigned g) {
        const uint2 words = *reinterpret_cast<const uint2*>(block + 48);
        const std::uint32_t d =
            (words.x >> 12 & 15) | (words.x >> 28) << 4 | (words.y >> 12 & 15) << 8 | (words.y >> 28) << 12;
        const std::uint32_t pair = half_word_at<2>(block + 48 + 2 * (g / 2)) >> 6 * (g & 1);
        return {
            .ds = {half_bits(d) * 0.125f},
            .half_scales = {static_cast<int>(2 * (pair & 7) + 1), static_cast<int>(2 * (pair >> 3 & 7) + 1)}};
    }
};

}  // namespace coterie::cuda
