#include "models/tensor_binder.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"

namespace coterie::models {
namespace {

Vector decode(const gguf::Tensor& tensor) {
    Vector values(static_cast<std::size_t>(tensor.values()));
    traits(tensor.type).decode(tensor.bytes.data(), tensor.values(), values.data());
    return values;
}

}  // namespace

std::string TensorBinder::layer(std::int64_t index, std::string_view name) {
    return fmt::format("blk.{}.{}", index, name);
}

bool TensorBinder::has(std::string_view base) const {
    return archive_->find_tensor(std::string(base) + ".weight") != nullptr;
}

bool TensorBinder::has_experts() const {
    const auto tensors = archive_->tensors();
    return std::any_of(tensors.begin(), tensors.end(), [](const gguf::Tensor& tensor) {
        return tensor.name.find("_exps.") != std::string_view::npos;
    });
}

const gguf::Tensor* TensorBinder::find(std::string_view name) {
    const gguf::Tensor* tensor = archive_->find_tensor(name);
    if (tensor) used_.emplace(name);
    return tensor;
}

const gguf::Tensor& TensorBinder::require(std::string_view name) {
    const gguf::Tensor* tensor = find(name);
    if (!tensor) {
        fail(ErrorCode::InvalidFile,
             "{}: tensor '{}' is missing, which architecture '{}' needs; the file is incomplete or was "
             "converted for "
             "another program",
             archive_->name(), name, archive_->metadata().string("general.architecture"));
    }
    return *tensor;
}

void TensorBinder::check_shape(const gguf::Tensor& tensor, std::int64_t columns, std::int64_t rows,
                               std::int64_t count) const {
    const bool rows_fit = rows == 0 || tensor.dims[1] == rows;
    if (tensor.dims[0] == columns && rows_fit && tensor.slices() == count) return;
    fail(ErrorCode::InvalidFile, "{}: tensor '{}' is {}, but the metadata asks for {} x {}{}",
         archive_->name(), tensor.name, gguf::shape_text(tensor), columns, rows,
         count > 1 ? fmt::format(" x {}", count) : "");
}

void TensorBinder::check_product_type(const gguf::Tensor& tensor) const {
    if (traits(tensor.type).dot) return;
    fail(ErrorCode::Unsupported, "{}: tensor '{}' has type {}, which cannot be multiplied", archive_->name(),
         tensor.name, traits(tensor.type).name);
}

ExpertMatrix TensorBinder::stacked(std::string_view base, std::int64_t columns, std::int64_t rows,
                                   std::int64_t count) {
    const gguf::Tensor& tensor = require(std::string(base) + ".weight");
    check_shape(tensor, columns, rows, count);
    check_product_type(tensor);
    ExpertMatrix matrix;
    matrix.name = base;
    matrix.type = tensor.type;
    matrix.columns = columns;
    matrix.rows = tensor.dims[1];
    matrix.row_bytes = *row_bytes(tensor.type, columns);
    matrix.data.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) matrix.data.push_back(tensor.slice(i).data());
    attach_companions(base, matrix, count);
    return matrix;
}

void TensorBinder::attach_companions(std::string_view base, ExpertMatrix& matrix, std::int64_t count) {
    matrix.bias = optional_vector(std::string(base) + ".bias", matrix.rows * count);
    const std::string scale = std::string(base) + ".scale";
    if (const gguf::Tensor* tensor = find(scale)) {
        if (tensor->values() != 1 && tensor->values() != count) check_shape(*tensor, count, 1, 1);
        matrix.scales = decode(*tensor);
        if (matrix.scales.size() == 1)
            matrix.scales.assign(static_cast<std::size_t>(count), matrix.scales[0]);
    }
    static_cast<void>(find(std::string(base) + ".input_scale"));  // a calibration value for other arithmetic
}

Matrix TensorBinder::matrix(std::string_view base, std::int64_t columns, std::int64_t rows) {
    ExpertMatrix stack = stacked(base, columns, rows, 1);
    extents_->widest_input = std::max(extents_->widest_input, columns);
    Matrix matrix;
    matrix.name = std::move(stack.name);
    matrix.type = stack.type;
    matrix.columns = columns;
    matrix.rows = stack.rows;
    matrix.row_bytes = stack.row_bytes;
    matrix.data = stack.data[0];
    matrix.scale = stack.scale(0);
    matrix.bias = std::move(stack.bias);
    return matrix;
}

Matrix TensorBinder::matrix_or_part(std::string_view base, std::string_view fused, std::int64_t fused_rows,
                                    std::int64_t begin, std::int64_t columns, std::int64_t rows) {
    if (!has(fused)) return matrix(base, columns, rows);
    return matrix(fused, columns, fused_rows).slice(begin, rows);
}

Vector TensorBinder::vector(std::string_view name, std::int64_t size) {
    const gguf::Tensor& tensor = require(name);
    if (tensor.values() != size) check_shape(tensor, size, 1, 1);
    return decode(tensor);
}

Vector TensorBinder::optional_vector(std::string_view name, std::int64_t size) {
    return archive_->find_tensor(name) ? vector(name, size) : Vector{};
}

ExpertMatrix TensorBinder::experts(std::int64_t index, std::string_view part, std::int64_t columns,
                                   std::int64_t rows, std::int64_t count) {
    const std::string fused = layer(index, "ffn_gate_up_exps");
    if (part != "down" && has(fused)) {
        ExpertMatrix matrix = stacked(fused, columns, 2 * rows, count);
        const std::int64_t offset = part == "up" ? rows : 0;
        matrix.rows = rows;
        for (const std::byte*& data : matrix.data) data += offset * matrix.row_bytes;
        if (!matrix.bias.empty()) {
            Vector bias;
            for (std::int64_t e = 0; e < count; ++e) {
                const auto first = matrix.bias.begin() + e * 2 * rows + offset;
                bias.insert(bias.end(), first, first + rows);
            }
            matrix.bias = std::move(bias);
        }
        return matrix;
    }
    const std::string base = layer(index, fmt::format("ffn_{}_exps", part));
    if (!has(base) && has(layer(index, fmt::format("ffn_{}.0", part)))) {
        return split_experts(index, part, columns, rows, count);
    }
    return stacked(base, columns, rows, count);
}

ExpertMatrix TensorBinder::split_experts(std::int64_t index, std::string_view part, std::int64_t columns,
                                         std::int64_t rows, std::int64_t count) {
    ExpertMatrix all;
    for (std::int64_t e = 0; e < count; ++e) {
        const ExpertMatrix one = stacked(layer(index, fmt::format("ffn_{}.{}", part, e)), columns, rows, 1);
        if (e == 0) {
            all = one;
            continue;
        }
        if (one.type != all.type) {
            fail(ErrorCode::Unsupported,
                 "{}: tensor '{}.weight' has type {}, the layer's expert 0 has {}; experts of one "
                 "layer must share a type",
                 archive_->name(), one.name, traits(one.type).name, traits(all.type).name);
        }
        all.data.push_back(one.data[0]);
    }
    return all;
}

DenseFfn TensorBinder::dense_ffn(std::int64_t index, std::int64_t embedding, std::int64_t ffn) {
    extents_->dense_ffn = std::max(extents_->dense_ffn, ffn);
    DenseFfn result{matrix(layer(index, "ffn_gate"), embedding, ffn),
                    matrix(layer(index, "ffn_up"), embedding, ffn),
                    matrix(layer(index, "ffn_down"), ffn, embedding)};
    extents_->float_down |= !traits(result.down.type).uses_quantised_activation;
    return result;
}

MoeFfn TensorBinder::moe_ffn(std::int64_t index, std::int64_t embedding, const cpu::Routing& routing,
                             std::int64_t expert_ffn, std::int64_t shared_ffn) {
    MoeFfn result;
    result.routing = routing;
    result.router = matrix(layer(index, "ffn_gate_inp"), embedding, routing.experts);
    for (const char* name : {"exp_probs_b.bias", "exp_probs_b.weight", "exp_probs_b"}) {
        if (result.selection_bias.empty()) {
            result.selection_bias = optional_vector(layer(index, name), routing.experts);
        }
    }
    result.gate = experts(index, "gate", embedding, expert_ffn, routing.experts);
    result.up = experts(index, "up", embedding, expert_ffn, routing.experts);
    result.down = experts(index, "down", expert_ffn, embedding, routing.experts);
    extents_->float_down |= !traits(result.down.type).uses_quantised_activation;
    if (shared_ffn > 0) {
        result.shared = DenseFfn{matrix(layer(index, "ffn_gate_shexp"), embedding, shared_ffn),
                                 matrix(layer(index, "ffn_up_shexp"), embedding, shared_ffn),
                                 matrix(layer(index, "ffn_down_shexp"), shared_ffn, embedding)};
        extents_->float_down |= !traits(result.shared->down.type).uses_quantised_activation;
        if (const std::string gate = layer(index, "ffn_gate_inp_shexp"); has(gate)) {
            result.shared_gate = matrix(gate, embedding, 1);
        }
    }
    extents_->expert_ffn = std::max(extents_->expert_ffn, expert_ffn);
    extents_->shared_ffn = std::max(extents_->shared_ffn, shared_ffn);
    extents_->experts = std::max(extents_->experts, routing.experts);
    extents_->experts_used = std::max(extents_->experts_used, routing.used);
    return result;
}

void TensorBinder::skip_prefix(std::string_view prefix) {
    for (const gguf::Tensor& tensor : archive_->tensors()) {
        if (tensor.name.starts_with(prefix)) used_.emplace(tensor.name);
    }
}

std::vector<std::string> TensorBinder::unused() const {
    std::vector<std::string> names;
    for (const gguf::Tensor& tensor : archive_->tensors()) {
        if (!used_.contains(tensor.name)) names.emplace_back(tensor.name);
    }
    return names;
}

}  // namespace coterie::models
