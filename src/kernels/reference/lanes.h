#pragma once

#include <cmath>
#include <cstdint>

namespace coterie::reference {

/// The order of every sum over a row (docs/canonical-arithmetic.md): value i goes to lane i mod 32, lanes
/// start at +0 and take their values in ascending order, the row is filled up with +0 to whole rounds of
/// lanes, and the lanes are folded in halves.
class Lanes {
  public:
    /// lane = fma(a, b, lane) for the next value.
    void add_product(float a, float b) {
        float& lane = lanes_[next_++ % kCount];
        lane = std::fma(a, b, lane);
    }

    /// lane = lane + a for the next value.
    void add(float a) { lanes_[next_++ % kCount] += a; }

    float sum() {
        while (next_ % kCount != 0) add(0.0f);  // turns a lane of -0 into +0
        for (int width = kCount / 2; width > 0; width /= 2) {
            for (int lane = 0; lane < width; ++lane) lanes_[lane] += lanes_[lane + width];
        }
        return lanes_[0];
    }

  private:
    static constexpr int kCount = 32;
    float lanes_[kCount] = {};
    std::int64_t next_ = 0;
};

inline float dot(const float* a, const float* b, std::int64_t n) {
    Lanes lanes;
    for (std::int64_t i = 0; i < n; ++i) lanes.add_product(a[i], b[i]);
    return lanes.sum();
}

}  // namespace coterie::reference
