#pragma once

#include <cstdint>

#include "kernels/cuda/activations.h"

struct CUstream_st;

/// Operations on whole rows of a step, bit for bit those of the CPU (src/kernels/reference/).
namespace coterie::cuda {

using StreamHandle = CUstream_st*;

/// [rows][width] with rows `stride` apart, a multiple of 32.
struct Rows {
    float* data = nullptr;
    std::int64_t stride = 0;
    std::int32_t rows = 0;
    std::int32_t width = 0;
};

/// x += y where y is there, then out = x / sqrt(mean(x^2) + epsilon) * weight over runs of `run` values, then
/// the quantised form of out where it is wanted (run is then the whole row).
struct NormArgs {
    Rows x;
    const float* y = nullptr;  ///< [rows][x.stride] or null
    const float* weight = nullptr;
    std::int32_t run = 0;  ///< at most kLongestNorm
    float epsilon = 0.0f;
    float* out = nullptr;  ///< [rows][x.stride], may be x
    ActivationBuffer quantised;
};
inline constexpr std::int32_t kLongestNorm = 12288;

/// Rows that are yet to be normalised: the norm of x, or of x + y, over whole rows. The kernels that read the
/// result form it themselves, each of their blocks for itself; one of them stores it.
struct NormedInput {
    const float* x = nullptr;  ///< [tokens][stride]
    const float* y = nullptr;  ///< as x, or null
    float* sum = nullptr;      ///< as x, other memory than x: where x + y goes; not used without y
    std::int64_t stride = 0;   ///< a multiple of 32
    const float* weight = nullptr;
    std::int32_t width = 0;  ///< at most kLongestNorm
    float epsilon = 0.0f;
    float* out = nullptr;  ///< as x
    ActivationBuffer quantised;
};
void rms_norm(const NormArgs& args, StreamHandle stream);

/// x += y
void add(const Rows& x, const float* y, StreamHandle stream);

void quantise(const Rows& x, const ActivationBuffer& out, StreamHandle stream);

enum class Gate { SwiGlu, SwiGluOai };

/// gate = activation(gate, up) and its quantised form. Rows r with used[r] == 0 are left out (null: none
/// are).
struct GateArgs {
    Rows gate;
    const float* up = nullptr;  ///< [rows][gate.stride]
    Gate activation = Gate::SwiGlu;
    const std::uint64_t* used = nullptr;
    ActivationBuffer quantised;
    bool keeps_values = true;  ///< in place of the gate's; false: nobody reads more than the quantised form
};
void gate(const GateArgs& args, StreamHandle stream);

enum class RotationStyle { Adjacent, Halves };

/// Rotates runs of `run` values from element `offset` of each on, in place; cosines and sines are
/// [rows][pairs].
struct RotationArgs {
    Rows x;
    std::int32_t run = 0;
    std::int32_t offset = 0;
    std::int32_t pairs = 0;
    RotationStyle style = RotationStyle::Halves;
    const float* cosines = nullptr;
    const float* sines = nullptr;
};
void rotate(const RotationArgs& args, StreamHandle stream);

/// Rows `indices[0 .. count)` of x, one after the other.
void gather(const Rows& x, const std::int32_t* indices, std::int32_t count, float* out, StreamHandle stream);

}  // namespace coterie::cuda
