#include "quant/random_blocks.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "quant/codebooks/iq1.h"
#include "quant/codebooks/iq2.h"
#include "quant/codebooks/iq3.h"
#include "quant/fp8.h"
#include "quant/half.h"
#include "quant/types/few_bits.h"
#include "quant/types/four_bit_tables.h"
#include "quant/types/k_quants.h"
#include "quant/types/legacy.h"
#include "quant/types/rows.h"

namespace coterie {
namespace {

void fill_bytes(SplitMix64& random, std::size_t bytes, std::byte* out) {
    for (; bytes >= 8; bytes -= 8, out += 8) {
        const std::uint64_t bits = random.next();
        std::memcpy(out, &bits, 8);
    }
    const std::uint64_t bits = random.next();
    std::memcpy(out, &bits, bytes);
}

/// Two neighbouring codes of an 8-bit scale, mixed so that the mean of the squares is the square of `scale`.
class MixedCode {
  public:
    MixedCode(float (*decode)(std::uint8_t), std::uint8_t highest, float scale) {
        while (code_ + 1 < highest && decode(static_cast<std::uint8_t>(code_ + 1)) <= scale) ++code_;
        const float low = decode(code_) / scale;
        const float high = decode(static_cast<std::uint8_t>(code_ + 1)) / scale;
        share_of_next_ = (1.0f - low * low) / (high * high - low * low);
    }
    std::uint8_t pick(SplitMix64& random) const {
        return static_cast<std::uint8_t>(code_ + (random.next_float() < share_of_next_ ? 1 : 0));
    }

  private:
    std::uint8_t code_ = 0;
    float share_of_next_ = 0.0f;
};

/// Makes the scales of a block of random bits valid. In the types whose codes lean to one side, half of the
/// blocks get a negative scale, which makes the mean zero.
template <typename Block>
struct Scaler {
    explicit Scaler(float scale) : d_(f32_to_f16(scale)) {}
    void apply(SplitMix64& random, Block& block) const {
        const auto sign = static_cast<std::uint16_t>(random.next() & 0x8000u);
        set_d(block, static_cast<std::uint16_t>(d_ | sign));
    }

  private:
    static void set_d(Block& block, std::uint16_t d) {
        if constexpr (requires { block.set_d(d); }) {
            block.set_d(d);
        } else {
            block.d = d;
        }
    }
    std::uint16_t d_;
};

/// Code 3 is no ternary digit; it becomes 1, so that -d and d come equally often.
template <>
struct Scaler<blocks::TQ2_0> {
    explicit Scaler(float scale) : d_(f32_to_f16(scale)) {}
    void apply(SplitMix64&, blocks::TQ2_0& block) const {
        for (std::uint8_t& codes : block.qs) {
            const int threes = codes & (codes >> 1) & 0x55;
            codes = static_cast<std::uint8_t>(codes & ~(threes << 1));
        }
        block.d = d_;
    }

  private:
    std::uint16_t d_;
};

/// With a minimum, the mean is zero where the minimum is the scale times the middle code.
template <typename Block>
struct SmallRangeScaler {
    SmallRangeScaler(float scale, float middle_code)
        : d_(f32_to_f16(scale)), m_(f32_to_f16(-scale * middle_code)) {}
    void apply(SplitMix64&, Block& block) const {
        block.d = d_;
        block.m = m_;
    }

  private:
    std::uint16_t d_;
    std::uint16_t m_;
};

template <>
struct Scaler<blocks::Q4_1> : SmallRangeScaler<blocks::Q4_1> {
    explicit Scaler(float scale) : SmallRangeScaler(scale, 7.5f) {}
};
template <>
struct Scaler<blocks::Q5_1> : SmallRangeScaler<blocks::Q5_1> {
    explicit Scaler(float scale) : SmallRangeScaler(scale, 15.5f) {}
};

/// The same for the K-quants: each part's minimum gets the code of its scale.
template <>
struct Scaler<blocks::Q2_K> {
    explicit Scaler(float scale) : d_(f32_to_f16(scale)), dmin_(f32_to_f16(scale * 1.5f)) {}
    void apply(SplitMix64&, blocks::Q2_K& block) const {
        for (std::uint8_t& pair : block.scales) pair = static_cast<std::uint8_t>((pair & 15) * 17);
        block.d = d_;
        block.dmin = dmin_;
    }

  private:
    std::uint16_t d_;
    std::uint16_t dmin_;
};

template <typename Block>
struct SixBitRangeScaler {
    SixBitRangeScaler(float scale, float middle_code)
        : d_(f32_to_f16(scale)), dmin_(f32_to_f16(scale * middle_code)) {}
    void apply(SplitMix64&, Block& block) const {
        std::uint8_t* bytes = block.scales.bytes;
        std::memcpy(bytes + 4, bytes, 4);
        for (int i = 8; i < 12; ++i) bytes[i] = static_cast<std::uint8_t>((bytes[i] & 15) * 17);
        block.d = d_;
        block.dmin = dmin_;
    }

  private:
    std::uint16_t d_;
    std::uint16_t dmin_;
};

template <>
struct Scaler<blocks::Q4_K> : SixBitRangeScaler<blocks::Q4_K> {
    explicit Scaler(float scale) : SixBitRangeScaler(scale, 7.5f) {}
};
template <>
struct Scaler<blocks::Q5_K> : SixBitRangeScaler<blocks::Q5_K> {
    explicit Scaler(float scale) : SixBitRangeScaler(scale, 15.5f) {}
};

template <>
struct Scaler<blocks::MXFP4> {
    explicit Scaler(float scale) : code_(half_of_e8m0, 254, scale) {}
    void apply(SplitMix64& random, blocks::MXFP4& block) const { block.e = code_.pick(random); }

  private:
    MixedCode code_;
};

template <>
struct Scaler<blocks::NVFP4> {
    explicit Scaler(float scale) : code_(half_of_ue4m3, 0x7e, scale) {}
    void apply(SplitMix64& random, blocks::NVFP4& block) const {
        for (std::uint8_t& d : block.d) d = code_.pick(random);
    }

  private:
    MixedCode code_;
};

template <typename Block>
void fill_blocks(SplitMix64& random, float scale, std::int64_t blocks, std::byte* out) {
    const Scaler<Block> scaler(scale);
    for (std::int64_t i = 0; i < blocks; ++i, out += sizeof(Block)) {
        fill_bytes(random, sizeof(Block), out);
        auto block = blocks::load_block<Block>(out, 0);
        scaler.apply(random, block);
        std::memcpy(out, &block, sizeof(Block));
    }
}

/// Uniform in (-scale, scale).
template <typename Stored, Stored (*kConvert)(float)>
void fill_numbers(SplitMix64& random, float scale, std::int64_t count, std::byte* out) {
    for (std::int64_t i = 0; i < count; ++i) {
        const auto bits = static_cast<std::int32_t>(random.next() >> 32);
        const Stored stored = kConvert(static_cast<float>(bits) * 0x1p-31f * scale);
        std::memcpy(out + i * static_cast<std::int64_t>(sizeof(Stored)), &stored, sizeof(Stored));
    }
}

float keep(float value) { return value; }

float root_mean_square(const std::vector<float>& values) {
    double squares = 0.0;
    for (const float value : values) squares += static_cast<double>(value) * value;
    return static_cast<float>(std::sqrt(squares / static_cast<double>(values.size())));
}

}  // namespace

RandomBlocks::FillFunction RandomBlocks::find_fill(DataType type) {
    switch (type) {
        case DataType::F32:
            return fill_numbers<float, keep>;
        case DataType::F16:
            return fill_numbers<std::uint16_t, f32_to_f16>;
        case DataType::BF16:
            return fill_numbers<std::uint16_t, f32_to_bf16>;
        case DataType::Q4_0:
            return fill_blocks<blocks::Q4_0>;
        case DataType::Q4_1:
            return fill_blocks<blocks::Q4_1>;
        case DataType::Q5_0:
            return fill_blocks<blocks::Q5_0>;
        case DataType::Q5_1:
            return fill_blocks<blocks::Q5_1>;
        case DataType::Q8_0:
            return fill_blocks<blocks::Q8_0>;
        case DataType::Q2_K:
            return fill_blocks<blocks::Q2_K>;
        case DataType::Q3_K:
            return fill_blocks<blocks::Q3_K>;
        case DataType::Q4_K:
            return fill_blocks<blocks::Q4_K>;
        case DataType::Q5_K:
            return fill_blocks<blocks::Q5_K>;
        case DataType::Q6_K:
            return fill_blocks<blocks::Q6_K>;
        case DataType::IQ1_S:
            return fill_blocks<blocks::IQ1_S>;
        case DataType::IQ1_M:
            return fill_blocks<blocks::IQ1_M>;
        case DataType::IQ2_XXS:
            return fill_blocks<blocks::IQ2_XXS>;
        case DataType::IQ2_XS:
            return fill_blocks<blocks::IQ2_XS>;
        case DataType::IQ2_S:
            return fill_blocks<blocks::IQ2_S>;
        case DataType::IQ3_XXS:
            return fill_blocks<blocks::IQ3_XXS>;
        case DataType::IQ3_S:
            return fill_blocks<blocks::IQ3_S>;
        case DataType::IQ4_NL:
            return fill_blocks<blocks::IQ4_NL>;
        case DataType::IQ4_XS:
            return fill_blocks<blocks::IQ4_XS>;
        case DataType::MXFP4:
            return fill_blocks<blocks::MXFP4>;
        case DataType::NVFP4:
            return fill_blocks<blocks::NVFP4>;
        case DataType::TQ1_0:
            return fill_blocks<blocks::TQ1_0>;
        case DataType::TQ2_0:
            return fill_blocks<blocks::TQ2_0>;
        case DataType::Q1_0:
            return fill_blocks<blocks::Q1_0>;
        case DataType::Q2_0:
            return fill_blocks<blocks::Q2_0>;
        default:
            return nullptr;
    }
}

RandomBlocks::RandomBlocks(DataType type, float rms) : fill_(find_fill(type)), scale_(1.0f) {
    COTERIE_CHECK(fill_ != nullptr);
    constexpr std::int64_t kSampleValues = 64 * 1024;
    const DataTypeTraits& type_traits = traits(type);
    const std::int64_t blocks = kSampleValues / type_traits.block_values;
    std::vector<std::byte> sample(static_cast<std::size_t>(blocks * type_traits.block_bytes));
    std::vector<float> values(kSampleValues);
    SplitMix64 random(1);
    fill(random, blocks, sample.data());
    type_traits.decode(sample.data(), kSampleValues, values.data());
    scale_ = rms / root_mean_square(values);
}

}  // namespace coterie
