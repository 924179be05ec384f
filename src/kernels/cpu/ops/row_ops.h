#pragma once

// Norms, softmax and the rotations of a head; their laws stand in the files of the same ops in
// kernels/reference/.
namespace coterie::cpu::COTERIE_ISA {
namespace {

inline float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

void rms_norm(const float* x, const float* weight, std::int64_t n, float epsilon, float* out) {
    const float mean = dot(x, x, n) / static_cast<float>(n);
    const float r = 1.0f / square_root(mean + epsilon);
    if (weight) return scale_weighted(x, r, weight, n, out);
    scale(x, r, n, out);
}

void l2_norm(const float* x, std::int64_t n, float epsilon, float* out) {
    const float r = 1.0f / square_root(dot(x, x, n) + epsilon);
    scale(x, r, n, out);
}

/// NaN among the values may or may not be returned: whatever is computed from the result is NaN then.
inline float largest(const float* x, std::int64_t n) {
    Vector best = broadcast(-__builtin_inff());
    std::int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) best = maximum(load(x + i), best);
    float each[kWidth];
    store(each, best);
    float result = each[0];
    for (int j = 1; j < kWidth; ++j) result = each[j] > result ? each[j] : result;
    for (; i < n; ++i) result = x[i] > result ? x[i] : result;
    return result;
}

/// out = exp(x - shift); returns the sum of out over 32 lanes.
inline float exp_and_sum(const float* x, float shift, std::int64_t n, float* out) {
    const Vector s = broadcast(shift);
    LaneSum total;
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        for (int j = 0; j < kLaneVectors; ++j) {
            const Vector p = exp(load(x + i + j * kWidth) - s);
            store(out + i + j * kWidth, p);
            total.lanes[j] = total.lanes[j] + p;
        }
    }
    for (int j = 0; j < kLaneVectors && i < n; ++j) {
        const std::int64_t at = i + j * kWidth;
        store_first(out + at, exp(load_first(x + at, n - at) - s), n - at);
        total.lanes[j] = total.lanes[j] + load_first(out + at, n - at);
    }
    return total.sum();
}

inline void divide(float* x, float divisor, std::int64_t n) {
    const Vector d = broadcast(divisor);
    std::int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) store(x + i, load(x + i) / d);
    store_first(x + i, load_first(x + i, n - i) / d, n - i);
}

void softmax(const float* x, std::int64_t n, float* out) {
    const float sum = exp_and_sum(x, largest(x, n), n, out);
    divide(out, sum, n);
}

void rope_adjacent(float* head, const float* cosines, const float* sines, std::int64_t pairs) {
    std::int64_t i = 0;
    for (; i + kWidth / 2 <= pairs; i += kWidth / 2) {
        const Vector x = load(head + 2 * i);
        const Vector partner = swap_neighbours(x) * load_twice(sines + i);
        store(head + 2 * i, fma_alternating(x, load_twice(cosines + i), partner));
    }
    for (; i < pairs; ++i) {
        const float a = head[2 * i];
        const float b = head[2 * i + 1];
        head[2 * i] = __builtin_fmaf(a, cosines[i], -(b * sines[i]));
        head[2 * i + 1] = __builtin_fmaf(b, cosines[i], a * sines[i]);
    }
}

void rope_halves(float* head, const float* cosines, const float* sines, std::int64_t pairs) {
    float* second = head + pairs;
    for (std::int64_t i = 0; i < pairs; i += kWidth) {
        const std::int64_t left = pairs - i;
        const Vector a = load_first(head + i, left);
        const Vector b = load_first(second + i, left);
        const Vector c = load_first(cosines + i, left);
        const Vector s = load_first(sines + i, left);
        store_first(head + i, fma(a, c, -(b * s)), left);
        store_first(second + i, fma(b, c, a * s), left);
    }
}

}  // namespace
}  // namespace coterie::cpu::COTERIE_ISA
