#pragma once

// Sums over a row in the order of the law, on the vector type of the including target (see all_ops.h).
namespace coterie::cpu::COTERIE_ISA {
namespace {

inline constexpr std::int64_t kLanes = 32;

/// lane[l] += lane[l + 4], then 2, then 1.
inline float fold_to_one(__m256 eight) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/// fold_to_one of eight vectors at once, in the same order of additions.
inline __m256 fold_each_to_one(const __m256 vectors[8]) {
    __m256 four[4];  // four lanes of vectors[i], then four of vectors[i + 4]
    for (int i = 0; i < 4; ++i) {
        four[i] = _mm256_add_ps(_mm256_permute2f128_ps(vectors[i], vectors[i + 4], 0x20),
                                _mm256_permute2f128_ps(vectors[i], vectors[i + 4], 0x31));
    }
    __m256 two[2];
    for (int i = 0; i < 2; ++i) {
        const __m256d a = _mm256_castps_pd(four[2 * i]);
        const __m256d b = _mm256_castps_pd(four[2 * i + 1]);
        two[i] = _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)),
                               _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
    }
    return _mm256_hadd_ps(two[0], two[1]);
}

/// The 32 lanes of one sum.
struct LaneSum {
    Vector lanes[kLaneVectors];

    LaneSum() {
        for (Vector& lane : lanes) lane = zero();
    }
    float sum() const { return fold_to_one(fold_to_eight(lanes)); }
};

inline float dot(const float* a, const float* b, std::int64_t n) {
    LaneSum total;
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        for (int j = 0; j < kLaneVectors; ++j) {
            const std::int64_t at = i + j * kWidth;
            total.lanes[j] = fma(load(a + at), load(b + at), total.lanes[j]);
        }
    }
    for (int j = 0; j < kLaneVectors && i < n; ++j) {
        const std::int64_t at = i + j * kWidth;
        total.lanes[j] = fma(load_first(a + at, n - at), load_first(b + at, n - at), total.lanes[j]);
    }
    return total.sum();
}

}  // namespace
}  // namespace coterie::cpu::COTERIE_ISA
