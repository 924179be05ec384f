#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "quant/data_type.h"
#include "synth/shape.h"

namespace coterie::synth {

/// What a matrix is for, which decides its type in a mix.
enum class MatrixRole {
    TokenEmbedding,
    Output,
    Query,
    Key,
    Value,
    AttentionOutput,
    FfnGate,
    FfnUp,
    FfnDown,
    ExpertGate,
    ExpertUp,
    ExpertDown,
    PredictionProjection,
};

/// Where it stands, as far as mixes ask.
struct MatrixPlace {
    MatrixRole role;
    std::int64_t layer;  ///< 0 for the matrices outside layers
    std::int64_t columns;
};

/// How a file's matrices are quantised: a named mix as quantising tools write it ("q4_k_m": mostly Q4_K, some
/// Q6_K), or one type for every matrix ("pure-q4_k"). Norms, biases and routers are F32 in all of them.
class QuantMix {
  public:
    /// Case does not matter. Throws InvalidArgument listing the names for an unknown one.
    explicit QuantMix(std::string_view name);

    const std::string& name() const { return name_; }

    /// `general.file_type`.
    std::uint32_t file_type() const { return file_type_; }

    /// The type of a matrix of a model of `layers` layers. Rows that are no whole number of the type's blocks
    /// get the type that tools fall back to (Q4_K to Q5_0, Q6_K to Q8_0, ...; in the end F16).
    DataType type_of(const Shape& shape, std::int64_t layers, const MatrixPlace& place) const;

  private:
    std::string name_;
    std::uint32_t file_type_;
    DataType base_;
    bool pure_;
};

/// "q4_k_m, q4_k_s, ..." for help and messages.
std::string quant_mix_names();

/// The type itself where `columns` is a whole number of its blocks, else what tools fall back to.
DataType fitting_type(DataType type, std::int64_t columns);

}  // namespace coterie::synth
