#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/route.h"
#include "models/weights.h"

/// What a layer may ask for. Architecture files describe a forward pass in these words and never see where
/// the numbers lie or who computes them; `engine/forward` implements them.
namespace coterie::models {

/// A scratch matrix of the running step with one row per token: a name, not memory. Declared while the model
/// is built
/// (`Workspace`), so that everything is allocated before the first step.
struct Value {
    int index = -1;
    std::int64_t width = 0;  ///< floats per token
};

/// Collects the scratch matrices that a model needs. Layers that use the same name and width share one.
class Workspace {
  public:
    Value declare(std::string_view name, std::int64_t width);
    std::span<const std::int64_t> widths() const { return widths_; }  ///< by Value::index

  private:
    std::vector<std::string> names_;
    std::vector<std::int64_t> widths_;
};

/// The largest sizes that a model's operations meet; 0 where it has no such operation.
struct Extents {
    std::int64_t embedding = 0;
    std::int64_t vocabulary = 0;
    std::int64_t widest_input = 0;  ///< columns of the widest product
    std::int64_t widest_head = 0;   ///< columns of the widest product per head
    std::int64_t dense_ffn = 0;     ///< intermediate values of the widest dense network ...
    std::int64_t expert_ffn = 0;    ///< ... of an expert ...
    std::int64_t shared_ffn = 0;    ///< ... and of a shared expert
    std::int64_t experts = 0;
    std::int64_t experts_used = 0;
    std::int64_t delta_net_channels = 0;
    bool float_down = false;  ///< some down matrix is F32, F16 or BF16
};

/// Which elements of a head rotate together.
enum class RopeStyle { Adjacent, Halves };

/// Rotary position embedding of the first 2 * frequencies.size() elements of a head: pair i turns by
/// position * frequencies[i]; cosine and sine are multiplied by `magnitude`.
struct Rope {
    RopeStyle style = RopeStyle::Halves;
    std::vector<double> frequencies;
    double magnitude = 1.0;
};

/// One projection of a common input.
struct Projection {
    const Matrix& weight;
    Value out;
};

/// Grouped-query attention over the layer's pages. Key-value head h serves query heads [h * g, (h + 1) * g).
struct Attention {
    std::int64_t heads;
    std::int64_t kv_heads;
    std::int64_t key_width;    ///< per head
    std::int64_t value_width;  ///< per head
    float scale;
    std::int64_t window = 0;        ///< positions visible, the query's own included; 0: all
    const Vector* sinks = nullptr;  ///< [heads] logits without a value
};

enum class FfnActivation { SwiGlu, SwiGluOai };

/// A dense gated feed-forward network.
struct DenseFfn {
    Matrix gate;
    Matrix up;
    Matrix down;
};

/// A mixture-of-experts feed-forward network with an optional shared expert.
struct MoeFfn {
    cpu::Routing routing;
    FfnActivation activation = FfnActivation::SwiGlu;
    Matrix router;
    Vector selection_bias;  ///< added to the probabilities for the choice only; empty: none
    ExpertMatrix gate;
    ExpertMatrix up;
    ExpertMatrix down;
    std::optional<DenseFfn> shared;
    std::optional<Matrix> shared_gate;  ///< one row: its sigmoid weighs the shared expert
};

/// A gated delta net mixer between its projections (Qwen3-Next). Key head of value head h: h / (value_heads /
/// key_heads).
struct DeltaNet {
    std::int64_t key_heads;
    std::int64_t value_heads;
    std::int64_t head_width;    ///< of keys and of values
    std::int64_t kernel;        ///< taps of the short convolution
    float epsilon;              ///< of the L2 norms of query and key, and of the output norm
    const Vector& convolution;  ///< [channels][kernel], channels q | k | v
    const Vector& decay;        ///< [value_heads]: -exp(A)
    const Vector& step_bias;    ///< [value_heads]
    const Vector& norm;         ///< [head_width]

    std::int64_t channels() const { return (2 * key_heads + value_heads) * head_width; }
    /// Floats of recurrent state: convolution inputs [kernel - 1][channels], then S
    /// [value_heads][width][width].
    std::int64_t state_floats() const {
        return (kernel - 1) * channels() + value_heads * head_width * head_width;
    }
};

/// The operations of one step. Calls come in the order of the forward pass; each is complete for all tokens
/// of the step when it returns, as far as the caller can see.
class LayerOps {
  public:
    virtual ~LayerOps() = default;

    /// out[t] = table row of token t.
    virtual void embed(const Matrix& table, Value out) = 0;

    /// out = x / sqrt(mean(x^2) + epsilon) * weight over runs of weight.size() values: the whole row, or each
    /// head of it.
    virtual void rms_norm(Value x, const Vector& weight, float epsilon, Value out) = 0;

    /// Each projection's out = weight x (then its scale, then its bias), for several weights that share the
    /// input.
    virtual void project(Value x, std::span<const Projection> projections) = 0;

    /// Per head h: out[out_stride * h ...] = weight[h] x[x_stride * h + x_offset ...]; weight holds one
    /// matrix per head.
    virtual void project_heads(const ExpertMatrix& weight, Value x, std::int64_t x_stride,
                               std::int64_t x_offset, Value out, std::int64_t out_stride) = 0;

    /// x += y
    virtual void add(Value x, Value y) = 0;

    /// Rotates each head (of `head_width` values) from element `offset` on, in place.
    virtual void rope(Value x, std::int64_t head_width, std::int64_t offset, const Rope& rope) = 0;

    /// out[stride * h + offset ...] = x[x_stride * h + x_offset ...], `width` values for each of `heads`
    /// heads.
    virtual void copy_heads(Value x, std::int64_t x_stride, std::int64_t x_offset, Value out,
                            std::int64_t out_stride, std::int64_t out_offset, std::int64_t width,
                            std::int64_t heads) = 0;

    /// Appends the step's keys and values to the layer's pages and attends. For a latent layer (MLA) `values`
    /// has no index: values are the first value_width elements of the keys.
    virtual void attention(int layer, const Attention& attention, Value queries, Value keys, Value values,
                           Value out) = 0;

    /// x *= sigmoid(gate), elementwise.
    virtual void sigmoid_gate(Value x, Value gate) = 0;

    /// The recurrent mixer: convolution, delta rule, gated norm. `qkv` has channels() values, `gate`
    /// value_heads * head_width, `beta` and `alpha` value_heads each.
    virtual void delta_net(int layer, const DeltaNet& mixer, Value qkv, Value gate, Value beta, Value alpha,
                           Value out) = 0;

    /// out = down(swiglu(gate x, up x))
    virtual void dense_ffn(const DenseFfn& ffn, Value x, Value out) = 0;

    /// Routes each token, runs its experts and the shared expert, and writes their weighted sum.
    virtual void moe_ffn(int layer, const MoeFfn& ffn, Value x, Value out) = 0;

    /// Told after each layer's second addition: progress, cancellation, observers.
    virtual void layer_done(int layer, Value residual) = 0;

    /// The rows that want logits, normalised, times the output matrix, to the step's consumer.
    virtual void logits(Value x, const Vector& norm, float epsilon, const Matrix& output) = 0;
};

}  // namespace coterie::models
