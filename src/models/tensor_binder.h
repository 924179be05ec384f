#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/archive.h"
#include "models/model.h"

namespace coterie::models {

/// Finds a model's tensors in its file by name, checks their shapes and types, and keeps count of what was
/// used. `base` below is a name without its ending: "blk.0.attn_q" stands for "blk.0.attn_q.weight" with its
/// companions
/// ".bias" and ".scale". Throws InvalidFile naming file and tensor.
class TensorBinder {
  public:
    TensorBinder(const gguf::Archive& archive, Extents& extents) : archive_(&archive), extents_(&extents) {}

    static std::string layer(std::int64_t index, std::string_view name);

    bool has(std::string_view base) const;
    /// Whether any tensor's name says that it belongs to routed experts.
    bool has_experts() const;

    /// rows x columns; `rows` 0 accepts any number.
    Matrix matrix(std::string_view base, std::int64_t columns, std::int64_t rows);
    /// Rows [begin, begin + rows) of the fused tensor where that exists (in all `fused_rows` rows), else the
    /// tensor.
    Matrix matrix_or_part(std::string_view base, std::string_view fused, std::int64_t fused_rows,
                          std::int64_t begin, std::int64_t columns, std::int64_t rows);

    /// A small tensor in binary32; `name` is complete.
    Vector vector(std::string_view name, std::int64_t size);
    /// Empty where the tensor is missing.
    Vector optional_vector(std::string_view name, std::int64_t size);

    /// `count` matrices: one tensor of three dimensions.
    ExpertMatrix stacked(std::string_view base, std::int64_t columns, std::int64_t rows, std::int64_t count);
    /// The layer's expert matrices: "ffn_<part>_exps", half of "ffn_gate_up_exps", or old files'
    /// "ffn_<part>.E".
    ExpertMatrix experts(std::int64_t layer, std::string_view part, std::int64_t columns, std::int64_t rows,
                         std::int64_t count);

    DenseFfn dense_ffn(std::int64_t layer, std::int64_t embedding, std::int64_t ffn);
    /// Router, experts and, with `shared_ffn` > 0, the shared expert and its gate where the file has one.
    MoeFfn moe_ffn(std::int64_t layer, std::int64_t embedding, const cpu::Routing& routing,
                   std::int64_t expert_ffn, std::int64_t shared_ffn);

    /// Marks tensors that are known and deliberately not used (prediction blocks, calibration scales).
    void skip_prefix(std::string_view prefix);
    /// Tensors that nothing asked for, in the file's order.
    std::vector<std::string> unused() const;

    const gguf::Archive& archive() const { return *archive_; }

  private:
    const gguf::Tensor* find(std::string_view name);
    const gguf::Tensor& require(std::string_view name);
    void check_shape(const gguf::Tensor& tensor, std::int64_t columns, std::int64_t rows,
                     std::int64_t count) const;
    void check_product_type(const gguf::Tensor& tensor) const;
    ExpertMatrix split_experts(std::int64_t layer, std::string_view part, std::int64_t columns,
                               std::int64_t rows, std::int64_t count);
    void attach_companions(std::string_view base, ExpertMatrix& matrix, std::int64_t count);

    const gguf::Archive* archive_;
    Extents* extents_;
    std::set<std::string, std::less<>> used_;
};

}  // namespace coterie::models
