#pragma once

// Conversion of KV cache rows; kernels/reference/store_cache.cpp is the law.
namespace coterie::cpu::COTERIE_ISA {
namespace {

void store_halves(const float* x, std::int64_t n, std::byte* out) {
    std::int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) store_half(out + 2 * i, load(x + i));
    if (i == n) return;
    std::byte rest[2 * kWidth];
    store_half(rest, load_first(x + i, n - i));
    __builtin_memcpy(out + 2 * i, rest, static_cast<std::size_t>(2 * (n - i)));
}

/// binary32 to binary16 of one number.
inline std::uint16_t half_bits(float x) {
    const __m128i half = _mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return static_cast<std::uint16_t>(_mm_extract_epi16(half, 0));
}

inline float half_value(const std::byte* p) {
    std::uint16_t half;
    __builtin_memcpy(&half, p, sizeof half);
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
}

inline void store_q8_block(const float* x, std::byte* block) {
    Vector magnitudes = zero();
    for (int i = 0; i < reference::kQ8BlockValues; i += kWidth) {
        magnitudes = maximum_bits(magnitudes, absolute(load(x + i)));
    }
    float each[kWidth];
    store(each, magnitudes);
    float a = each[0];
    for (int i = 1; i < kWidth; ++i) a = a >= each[i] || a != a ? a : each[i];

    const bool finite = a - a == 0.0f;
    const bool small = a < reference::kQ8SmallestMaximum;
    const float inverse = small ? 0.0f : 127.0f / a;
    const std::uint16_t scale = half_bits(!finite ? __builtin_nanf("") : small ? 0.0f : a / 127.0f);
    __builtin_memcpy(block, &scale, sizeof scale);
    for (int i = 0; i < reference::kQ8BlockValues; i += kWidth) {
        const Vector quantised = finite ? load(x + i) * broadcast(inverse) : zero();
        store_int8(block + reference::kQ8ScaleBytes + i, quantised);
    }
}

void store_cache(CacheType type, const float* x, std::int64_t n, std::byte* out) {
    switch (type) {
        case CacheType::F32:
            __builtin_memcpy(out, x, static_cast<std::size_t>(n) * sizeof(float));
            return;
        case CacheType::F16:
            store_halves(x, n, out);
            return;
        case CacheType::Q8_0:
            for (std::int64_t i = 0; i < n; i += reference::kQ8BlockValues) {
                store_q8_block(x + i, out + i / reference::kQ8BlockValues * reference::kQ8BlockBytes);
            }
            return;
    }
}

inline void load_halves(const std::byte* row, std::int64_t count, float* out) {
    std::byte last[2 * kLanes] = {};
    if (count < kLanes) {
        __builtin_memcpy(last, row, static_cast<std::size_t>(2 * count));
        row = last;
    }
    for (int i = 0; i < kLanes; i += kWidth) store(out + i, load_half(row + 2 * i));
}

/// Values [32 block, 32 block + 32) of a cache row of n values as binary32, +0 beyond the row.
inline void load_cache_block(CacheType type, const std::byte* row, std::int64_t n, std::int64_t block,
                             float* out) {
    const std::int64_t first = block * kLanes;
    if (type == CacheType::F32) {
        const float* values = reinterpret_cast<const float*>(row) + first;
        for (int i = 0; i < kLanes; i += kWidth) store(out + i, load_first(values + i, n - first - i));
    } else if (type == CacheType::F16) {
        load_halves(row + 2 * first, n - first, out);
    } else {
        const std::byte* stored = row + block * reference::kQ8BlockBytes;
        const Vector scale = broadcast(half_value(stored));
        for (int i = 0; i < kLanes; i += kWidth) {
            store(out + i, load_int8(stored + reference::kQ8ScaleBytes + i) * scale);
        }
    }
}

}  // namespace
}  // namespace coterie::cpu::COTERIE_ISA
