#include "synth/portable_math.h"

#include <cmath>
#include <cstdint>
#include <numbers>

namespace coterie::synth {

double natural_log(double x) {
    int exponent = 0;
    double mantissa = std::frexp(x, &exponent);  // in [0.5, 1)
    if (mantissa < 0.5 * std::numbers::sqrt2) {
        mantissa *= 2.0;
        --exponent;
    }
    // ln m = 2 (z + z^3/3 + z^5/5 + ...), |z| <= 0.172: twelve terms leave less than 1e-18.
    const double z = (mantissa - 1.0) / (mantissa + 1.0);
    double sum = 0.0;
    for (int i = 23; i >= 1; i -= 2) sum = sum * z * z + 1.0 / i;
    return 2.0 * z * sum + exponent * std::numbers::ln2;
}

double exponential(double x) {
    const double exponent = std::floor(x / std::numbers::ln2 + 0.5);
    const double rest = x - exponent * std::numbers::ln2;  // |rest| <= 0.35: eighteen terms suffice
    double sum = 1.0;
    for (int i = 18; i >= 1; --i) sum = 1.0 + sum * rest / i;
    return std::ldexp(sum, static_cast<int>(exponent));
}

double power(double base, double exponent) { return exponential(exponent * natural_log(base)); }

float bell_draw(SplitMix64& random) {
    std::int32_t sum = 0;  // of twelve 16-bit numbers
    for (int i = 0; i < 3; ++i) {
        const std::uint64_t bits = random.next();
        for (int shift = 0; shift < 64; shift += 16)
            sum += static_cast<std::int32_t>((bits >> shift) & 0xffff);
    }
    return static_cast<float>(sum - 6 * 65535) * 0x1p-16f;
}

}  // namespace coterie::synth
