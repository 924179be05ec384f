#include "quant/quantisers/fit.h"

namespace coterie::blocks {

ScaleAndMinimum fit_scale_and_minimum(const float* x, int n, int highest) {
    const float low = std::min(0.0f, *std::min_element(x, x + n));
    const float high = *std::max_element(x, x + n);
    const ScaleAndMinimum range{std::max(0.0f, high - low) / static_cast<float>(highest), -low};
    const float inverse = inverse_or_zero(range.scale);

    float sum_x = 0.0f;
    float sum_code = 0.0f;
    float sum_products = 0.0f;
    float sum_squares = 0.0f;
    for (int i = 0; i < n; ++i) {
        const auto code = static_cast<float>(round_to_range((x[i] - low) * inverse, 0, highest));
        sum_x += x[i];
        sum_code += code;
        sum_products += x[i] * code;
        sum_squares += code * code;
    }
    const auto count = static_cast<float>(n);
    const float determinant = count * sum_squares - sum_code * sum_code;
    if (determinant <= 0.0f) return range;  // all codes are equal
    const float slope = (count * sum_products - sum_code * sum_x) / determinant;
    const float offset = (sum_x - slope * sum_code) / count;
    if (offset > 0.0f) return {std::max(0.0f, sum_products / sum_squares), 0.0f};
    return {std::max(0.0f, slope), -offset};
}

}  // namespace coterie::blocks
