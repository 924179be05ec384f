#pragma once

#include <cstdint>
#include <random>

namespace coterie {

/// The random numbers of one answer: the same for a seed on every platform, which the standard promises for
/// the engine and not for its distributions.
class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}

    /// Uniform in [0, 1), a multiple of 2^-53.
    double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

  private:
    std::mt19937_64 engine_;
};

}  // namespace coterie
