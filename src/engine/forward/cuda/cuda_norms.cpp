#include <utility>

#include "base/error.h"
#include "engine/forward/cuda/cuda_ops.h"

namespace coterie::engine {

using models::Value;
using models::Vector;

void CudaOps::flush() {
    if (pending_norm_) {
        const PendingNorm norm = *std::exchange(pending_norm_, std::nullopt);
        Buffer& to = buffer(norm.out);
        const bool adds = pending_add_ && pending_add_->first.index == norm.x.index;
        cuda::rms_norm({.x = rows(buffer(norm.x)),
                        .y = adds ? row_of(pending_add_->second) : nullptr,
                        .weight = parts_.weights.at(*norm.weight),
                        .run = static_cast<std::int32_t>(norm.weight->size()),
                        .epsilon = norm.epsilon,
                        .out = to.data,
                        .quantised = to.quantised},
                       handle());
        if (adds) pending_add_.reset();
        if (norm.x.index != norm.out.index) buffer(norm.x).quantised_now = false;
        to.quantised_now = true;
    }
    if (!pending_add_) return;
    Buffer& x = buffer(pending_add_->first);
    cuda::add(rows(x), row_of(pending_add_->second), handle());
    x.quantised_now = false;
    pending_add_.reset();
}

void CudaOps::rms_norm(Value x, const Vector& weight, float epsilon, Value out) {
    const auto run = static_cast<std::int64_t>(weight.size());
    if (run < buffer(x).width) {
        COTERIE_CHECK(x.index == out.index && head_work(x).rope == nullptr && !norm_is_pending_for(x));
        settle(x);
        head_work(x) = {.norm = &weight, .epsilon = epsilon, .rope = nullptr, .head_width = run};
        return;
    }
    if (pending_norm_ || (pending_add_ && pending_add_->first.index != x.index)) flush();
    pending_norm_ = {x, &weight, epsilon, out};
    const bool waits = is_window() && x.index == parts_.model.residual.index && x.index != out.index;
    if (!waits) flush();
}

bool CudaOps::norm_is_pending_for(Value value) const {
    return pending_norm_ && pending_norm_->out.index == value.index;
}

/// The sum cannot go where x is: blocks that form it for themselves may still read there.
cuda::NormedInput CudaOps::take_norm() {
    const PendingNorm norm = *std::exchange(pending_norm_, std::nullopt);
    Buffer& from = buffer(norm.x);
    Buffer& to = buffer(norm.out);
    cuda::NormedInput input;
    input.x = from.data;
    input.stride = from.stride;
    input.weight = parts_.weights.at(*norm.weight);
    input.width = static_cast<std::int32_t>(from.width);
    input.epsilon = norm.epsilon;
    input.out = to.data;
    input.quantised = to.quantised;
    to.quantised_now = true;
    if (!pending_add_) return input;
    input.y = row_of(pending_add_->second);
    input.sum = from.data == residual_home_ ? residual_away_ : residual_home_;
    from.data = input.sum;
    from.quantised_now = false;
    pending_add_.reset();
    return input;
}

void CudaOps::multiply_normed(Value x, Products& products) {
    const DataType type = products.matrices[0]->type;
    cuda::NormedMatmul kernel = cuda::normed_matmul(type, type);
    const auto width = static_cast<std::int32_t>(buffer(x).width);
    if (view_.tokens > 1 || kernel == nullptr || !cuda::takes_normed(width)) return flush();
    cuda::MatmulArgs args;
    args.columns = width;
    args.tokens = 1;
    take_jobs(type, products, args);
    const int first_of_second = args.count;
    for (std::size_t i = 0; i < products.matrices.size(); ++i) {
        if (products.done >> i & 1) continue;
        const DataType second = products.matrices[i]->type;
        if (cuda::NormedMatmul both = cuda::normed_matmul(type, second)) {
            kernel = both;
            take_jobs(second, products, args);
            break;
        }
    }
    kernel(args, take_norm(), first_of_second, handle());
}

}  // namespace coterie::engine
