#pragma once

// Functions of each value by itself; kernels/reference/elementwise.cpp is their law.
namespace coterie::cpu::COTERIE_ISA {
namespace {

// Function objects and not lambdas: a lambda's body would not inherit the target of the region.
struct Add {
    static Vector apply(Vector a, Vector b) { return a + b; }
};
struct Multiply {
    static Vector apply(Vector a, Vector b) { return a * b; }
};
struct Sigmoid {
    static Vector apply(Vector x) { return broadcast(1.0f) / (broadcast(1.0f) + exp(-x)); }
};
struct Silu {
    static Vector apply(Vector x) { return gated(x, x); }
};
struct Softplus {
    static Vector apply(Vector x) {
        const Vector curved = maximum(x, zero()) + log1p_unit(exp(-absolute(x)));
        return select(x > broadcast(reference::kSoftplusLinear), x, curved);
    }
};
struct Swiglu {
    static Vector apply(Vector gate, Vector up) { return Silu::apply(gate) * up; }
};
struct SwigluOai {
    static Vector apply(Vector gate, Vector up) {
        const Vector limit = broadcast(reference::kSwigluOaiLimit);
        const Vector g = minimum(limit, gate);
        const Vector u = maximum(-limit, minimum(limit, up));
        return gated(g, broadcast(reference::kSwigluOaiSlope) * g) * (u + broadcast(1.0f));
    }
};

template <typename Function>
void map(const float* x, std::int64_t n, float* out) {
    std::int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) store(out + i, Function::apply(load(x + i)));
    store_first(out + i, Function::apply(load_first(x + i, n - i)), n - i);
}

template <typename Function>
void map(const float* a, const float* b, std::int64_t n, float* out) {
    std::int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) store(out + i, Function::apply(load(a + i), load(b + i)));
    store_first(out + i, Function::apply(load_first(a + i, n - i), load_first(b + i, n - i)), n - i);
}

void add_scaled(const float* x, float factor, std::int64_t n, float* out) {
    const Vector f = broadcast(factor);
    std::int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) store(out + i, fma(f, load(x + i), load(out + i)));
    store_first(out + i, fma(f, load_first(x + i, n - i), load_first(out + i, n - i)), n - i);
}

/// out = x * factor
void scale(const float* x, float factor, std::int64_t n, float* out) {
    const Vector f = broadcast(factor);
    std::int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) store(out + i, load(x + i) * f);
    store_first(out + i, load_first(x + i, n - i) * f, n - i);
}

/// out = (x * factor) * weight
void scale_weighted(const float* x, float factor, const float* weight, std::int64_t n, float* out) {
    const Vector f = broadcast(factor);
    std::int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) store(out + i, load(x + i) * f * load(weight + i));
    store_first(out + i, load_first(x + i, n - i) * f * load_first(weight + i, n - i), n - i);
}

}  // namespace
}  // namespace coterie::cpu::COTERIE_ISA
