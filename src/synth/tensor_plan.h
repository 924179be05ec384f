#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quant/data_type.h"
#include "synth/quant_mix.h"
#include "synth/shape.h"

namespace coterie::synth {

/// The embedding's dimensions [0, kReservedDimensions) carry what steers routing and nothing else: only the
/// embedding writes them, and only routers read them (router.h).
inline constexpr std::int64_t kReservedDimensions = 256;

/// How a tensor's values are made.
enum class Content {
    Random,     ///< mean 0, root mean square `rms`
    Embedding,  ///< random but for the reserved dimensions
    Router,     ///< gives the routing model's logits
    MixerNorm,  ///< near 1, and 0 in the reserved dimensions; also the output norm
    FfnNorm,    ///< near 1, and 2^-10 in the reserved dimensions
    Norm,       ///< near 1
    Zero,
};

/// What a tensor counts as in the table of sizes.
enum class Part {
    TokenEmbedding,
    Output,
    Attention,
    DenseFfn,
    SharedExpert,
    Experts,
    Router,
    Norms,
    Prediction
};
inline constexpr int kParts = 9;
std::string_view name(Part part);

struct PlannedTensor {
    std::string name;
    DataType type;
    std::vector<std::int64_t> dims;
    Content content;
    float rms = 0.0f;              ///< Random only
    bool writes_residual = false;  ///< rows (a vector: values) of the reserved dimensions are zero
    Part part = Part::Norms;
};

/// All tensors of a model of `layers` layers in the order of the file.
std::vector<PlannedTensor> plan_tensors(const Shape& shape, std::int64_t layers, const QuantMix& mix);

}  // namespace coterie::synth
