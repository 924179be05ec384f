#include <cmath>

#include "kernels/reference/reference.h"
#include "kernels/reference/transcendental.h"

// Each value by itself; the expressions of the activation functions stand in transcendental.h.
namespace coterie::reference {

void add(const float* a, const float* b, std::int64_t n, float* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

void add_scaled(const float* x, float factor, std::int64_t n, float* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = std::fma(factor, x[i], out[i]);
}

void multiply(const float* a, const float* b, std::int64_t n, float* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = a[i] * b[i];
}

void swiglu(const float* gate, const float* up, std::int64_t n, float* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = swiglu(gate[i], up[i]);
}

void swiglu_oai(const float* gate, const float* up, std::int64_t n, float* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = swiglu_oai(gate[i], up[i]);
}

void silu(const float* x, std::int64_t n, float* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = silu(x[i]);
}

void sigmoid(const float* x, std::int64_t n, float* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = sigmoid(x[i]);
}

void softplus(const float* x, std::int64_t n, float* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = softplus(x[i]);
}

}  // namespace coterie::reference
