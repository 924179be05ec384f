#include <algorithm>
#include <cmath>

#include "kernels/reference/lanes.h"
#include "kernels/reference/reference.h"
#include "kernels/reference/transcendental.h"

namespace coterie::reference {

// p = exp(x - max x); out = p / (sum of p over 32 lanes), an IEEE division per value. -inf gives 0; a NaN, a
// +inf or nothing but -inf gives NaN everywhere.
void softmax(const float* x, std::int64_t n, float* out) {
    float maximum = -INFINITY;
    for (std::int64_t i = 0; i < n; ++i) maximum = std::max(maximum, x[i]);
    Lanes lanes;
    for (std::int64_t i = 0; i < n; ++i) {
        out[i] = exp(x[i] - maximum);
        lanes.add(out[i]);
    }
    const float sum = lanes.sum();
    for (std::int64_t i = 0; i < n; ++i) out[i] /= sum;
}

}  // namespace coterie::reference
