#pragma once

#include <cstdint>

namespace coterie {

/// Steele, Lea and Flood's SplitMix64: fast reproducible random bits for synthetic weights and tests.
/// Neighbouring seeds give unrelated streams.
class SplitMix64 {
  public:
    explicit SplitMix64(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    /// Uniform in [0, 1).
    float next_float() { return static_cast<float>(next() >> 40) * 0x1p-24f; }

  private:
    std::uint64_t state_;
};

}  // namespace coterie
