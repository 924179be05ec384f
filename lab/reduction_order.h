#pragma once

// Shared by the studies of the reduction order (docs/adr/0001-canonical-arithmetic.md): the three quant
// types, the scalar dot product in each candidate order, and random data. Self-contained on purpose: the
// studies decide the law, so they must not lean on the code that follows it.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace coterie::lab {

/// How the G per-group values of a row become one sum.
enum class Order {
    Segments,  ///< (a) 8 contiguous segments, each summed in order, segments added in order
    Lanes4,    ///< (d) group g in lane g mod 4, lanes added in order
    Lanes8,    ///< (b) group g in lane g mod 8, lanes added in order
    Lanes32,   ///< (c) group g in lane g mod 32, lanes added pairwise: l + 16, then 8, 4, 2, 1
    Free,  ///< no law: whatever is fastest, equal only within rounding; the cost of a law is measured against
           ///< it
};

inline const char* name_of(Order order) {
    const char* names[] = {"segments", "lanes4", "lanes8", "lanes32", "free"};
    return names[static_cast<int>(order)];
}

enum class Type { Q4_K, Q6_K, IQ4_XS };

inline const char* name_of(Type type) {
    const char* names[] = {"Q4_K", "Q6_K", "IQ4_XS"};
    return names[static_cast<int>(type)];
}

inline constexpr int kBlockValues = 256;  ///< values per block of all three types
inline constexpr int kBlockGroups = 8;

constexpr int block_bytes(Type type) { return type == Type::Q4_K ? 144 : type == Type::Q6_K ? 210 : 136; }

/// One quantised input row, by the rule of docs/canonical-arithmetic.md.
struct Activation {
    int columns = 0;
    std::vector<std::int8_t> quants;
    std::vector<float> scales, scaled_sums;    ///< per group of 32
    std::vector<std::int16_t> half_sums;       ///< two per group
    std::vector<std::uint8_t> is_segment_end;  ///< per group: 1 where a segment of order (a) ends
    std::vector<std::int8_t>
        wide_quants[3];  ///< per type: quants in the order in which 64-byte loads meet them
    int groups() const { return columns / 32; }
};

/// The first group of segment `segment`.
constexpr int segment_begin(int segment, int groups) { return segment * groups / 8; }

inline float half_to_float(const std::uint8_t* bytes) {
    const unsigned bits = bytes[0] | bytes[1] << 8;
    const int exponent = bits >> 10 & 31;
    const int mantissa = bits & 1023;
    const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                          : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

inline constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

/// The exact parts of one group: acc = fma(sum, ds * scale, acc), then acc = fma(ms, scaled_sum, acc) for
/// Q4_K.
struct GroupTerm {
    std::int32_t sum;
    float ds, ms;
};

inline GroupTerm q4_k_group(const std::uint8_t* block, int k, const std::int8_t* q) {
    const std::uint8_t* s = block + 4;
    const int scale = k < 4 ? s[k] & 63 : (s[k + 4] & 15) | (s[k - 4] >> 6) << 4;
    const int minimum = k < 4 ? s[k + 4] & 63 : s[k + 4] >> 4 | (s[k] >> 6) << 4;
    std::int32_t sum = 0;
    for (int i = 0; i < 32; ++i) sum += (block[16 + 32 * (k / 2) + i] >> 4 * (k % 2) & 15) * q[i];
    return {sum, half_to_float(block) * static_cast<float>(scale),
            -(half_to_float(block + 2) * static_cast<float>(minimum))};
}

inline GroupTerm q6_k_group(const std::uint8_t* block, int k, const std::int8_t* q) {
    const int half = k / 4;
    const int part = k % 4;
    std::int32_t sum = 0;
    for (int i = 0; i < 32; ++i) {
        const int low = block[64 * half + 32 * (part % 2) + i] >> 4 * (part / 2) & 15;
        const int high = block[128 + 32 * half + i] >> 2 * part & 3;
        const int scale = static_cast<std::int8_t>(block[192 + 2 * k + i / 16]);
        sum += scale * ((low | high << 4) - 32) * q[i];
    }
    return {sum, half_to_float(block + 208), 0.0f};
}

inline GroupTerm iq4_xs_group(const std::uint8_t* block, int k, const std::int8_t* q) {
    const int scales_high = block[2] | block[3] << 8;
    const int scale = (block[4 + k / 2] >> 4 * (k % 2) & 15) | (scales_high >> 2 * k & 3) << 4;
    std::int32_t sum = 0;
    for (int i = 0; i < 32; ++i) sum += kIq4Values[block[8 + 16 * k + i % 16] >> 4 * (i / 16) & 15] * q[i];
    return {sum, half_to_float(block) * static_cast<float>(scale - 32), 0.0f};
}

inline GroupTerm group_term(Type type, const std::uint8_t* block, int k, const std::int8_t* q) {
    if (type == Type::Q4_K) return q4_k_group(block, k, q);
    return type == Type::Q6_K ? q6_k_group(block, k, q) : iq4_xs_group(block, k, q);
}

inline float accumulate(Type type, const std::uint8_t* row, const Activation& x, int g, float acc) {
    const GroupTerm term = group_term(type, row + g / 8 * block_bytes(type), g % 8, x.quants.data() + 32 * g);
    acc = std::fma(static_cast<float>(term.sum), term.ds * x.scales[g], acc);
    return type == Type::Q4_K ? std::fma(term.ms, x.scaled_sums[g], acc) : acc;
}

/// The law that a kernel of this order must meet bit for bit. `Free` has none: it gets the lanes of (b).
inline float scalar_dot(Type type, Order order, const std::uint8_t* row, const Activation& x) {
    const int groups = x.groups();
    float lanes[32] = {};
    for (int g = 0, segment = 0; g < groups; ++g) {
        const int lane = order == Order::Segments  ? segment
                         : order == Order::Lanes32 ? g % 32
                         : order == Order::Lanes4  ? g % 4
                                                   : g % 8;
        lanes[lane] = accumulate(type, row, x, g, lanes[lane]);
        segment += x.is_segment_end[g];
    }
    if (order == Order::Lanes32) {
        for (int width = 16; width > 0; width /= 2)
            for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
        return lanes[0];
    }
    float total = 0.0f;
    for (int l = 0; l < 8; ++l) total += lanes[l];
    return total;
}

/// The order in which 64-byte loads of a row meet the 16-value halves of four groups.
inline std::vector<std::int8_t> wide_order(Type type, const std::vector<std::int8_t>& quants) {
    const int orders[3][8] = {{0, 1, 4, 5, 2, 3, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, {0, 2, 4, 6, 1, 3, 5, 7}};
    std::vector<std::int8_t> out(quants.size());
    for (std::size_t half = 0; half < quants.size() / 16; ++half) {
        const std::size_t source = half / 8 * 8 + orders[static_cast<int>(type)][half % 8];
        std::memcpy(out.data() + 16 * half, quants.data() + 16 * source, 16);
    }
    return out;
}

inline Activation random_activation(int columns, std::mt19937& random) {
    Activation x;
    x.columns = columns;
    std::normal_distribution<float> normal;
    for (int g = 0; g < columns / 32; ++g) {
        float values[32];
        float largest = 0.0f;
        for (float& value : values) largest = std::fmax(largest, std::fabs(value = normal(random)));
        int sums[2] = {};
        for (int i = 0; i < 32; ++i) {
            x.quants.push_back(static_cast<std::int8_t>(std::rint(values[i] * (127.0f / largest))));
            sums[i / 16] += x.quants.back();
        }
        x.scales.push_back(largest / 127.0f);
        x.scaled_sums.push_back(x.scales.back() * static_cast<float>(sums[0] + sums[1]));
        for (int sum : sums) x.half_sums.push_back(static_cast<std::int16_t>(sum));
        int ends = 0;
        for (int s = 1; s <= 8; ++s) ends |= segment_begin(s, columns / 32) == g + 1;
        x.is_segment_end.push_back(static_cast<std::uint8_t>(ends));
    }
    for (Type type : {Type::Q4_K, Type::Q6_K, Type::IQ4_XS})
        x.wide_quants[static_cast<int>(type)] = wide_order(type, x.quants);
    return x;
}

/// Fills `count` blocks with random codes and scales; the half-precision factors get sane random sizes.
inline void fill_random_blocks(Type type, std::uint8_t* blocks, std::size_t count, std::mt19937& random) {
    const auto bytes = static_cast<std::size_t>(block_bytes(type));
    for (std::size_t i = 0; i < count * bytes; i += 4) {
        const std::uint32_t word = random();
        std::memcpy(blocks + i, &word, std::min<std::size_t>(4, count * bytes - i));
    }
    const auto write_half = [&random](std::uint8_t* out) {
        const auto bits =
            static_cast<std::uint16_t>((random() & 0x8000) | (8 + random() % 4) << 10 | (random() & 1023));
        std::memcpy(out, &bits, 2);
    };
    for (std::size_t b = 0; b < count; ++b) {
        std::uint8_t* block = blocks + b * bytes;
        write_half(type == Type::Q6_K ? block + 208 : block);
        if (type == Type::Q4_K) write_half(block + 2);
    }
}

}  // namespace coterie::lab
