#include <cmath>

#include "kernels/reference/lanes.h"
#include "kernels/reference/reference.h"

namespace coterie::reference {

// r = 1 / sqrt(dot(x, x) / n + epsilon), every operation rounded; out = (x * r) * weight.
void rms_norm(const float* x, const float* weight, std::int64_t n, float epsilon, float* out) {
    const float mean = dot(x, x, n) / static_cast<float>(n);
    const float r = 1.0f / std::sqrt(mean + epsilon);
    for (std::int64_t i = 0; i < n; ++i) out[i] = weight ? x[i] * r * weight[i] : x[i] * r;
}

// r = 1 / sqrt(dot(x, x) + epsilon); out = x * r.
void l2_norm(const float* x, std::int64_t n, float epsilon, float* out) {
    const float r = 1.0f / std::sqrt(dot(x, x, n) + epsilon);
    for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] * r;
}

}  // namespace coterie::reference
