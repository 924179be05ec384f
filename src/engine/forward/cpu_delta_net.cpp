#include <algorithm>
#include <cmath>

#include "engine/forward/cpu_ops.h"

namespace coterie::engine {

/// Causal depthwise convolution over the slice's tokens, then SiLU. `window` holds the last kernel - 1
/// inputs, the oldest first; taps are added from the oldest on, without fusing.
void CpuOps::convolve(const models::DeltaNet& mixer, models::Value qkv, const StepSlice& slice,
                      float* window) {
    const std::int64_t channels = mixer.channels();
    const std::int64_t history = mixer.kernel - 1;
    const auto input = [&](std::int64_t i) {
        return i < 0 ? window + (history + i) * channels : row(qkv, slice.first_row + i);
    };
    for_rows_of(slice.count, slice.count * channels * mixer.kernel, [&](std::int64_t i) {
        float* out = convolved_.data() + (slice.first_row + i) * channels;
        std::fill_n(out, channels, 0.0f);
        for (std::int64_t tap = 0; tap < mixer.kernel; ++tap) {
            const float* x = input(i - history + tap);
            const float* w = mixer.convolution.data() + tap * channels;
            for (std::int64_t c = 0; c < channels; ++c) out[c] += w[c] * x[c];
        }
        kernels_.silu(out, channels, out);
        normalise_heads(mixer, slice.first_row + i);
    });
    for (std::int64_t i = 0; i < history; ++i) {
        // In place: row i of the new window lies at or after row i of the old one.
        std::copy_n(input(slice.count - history + i), channels, window + i * channels);
    }
}

void CpuOps::normalise_heads(const models::DeltaNet& mixer, std::int64_t t) {
    float* keys_and_queries = convolved_.data() + t * mixer.channels();
    for (std::int64_t h = 0; h < 2 * mixer.key_heads; ++h) {
        float* head = keys_and_queries + h * mixer.head_width;
        kernels_.l2_norm(head, mixer.head_width, mixer.epsilon, head);
    }
}

void CpuOps::delta_net(int layer, const models::DeltaNet& mixer, models::Value qkv, models::Value gate,
                       models::Value beta, models::Value alpha, models::Value out) {
    const std::int64_t width = mixer.head_width;
    const std::int64_t heads = mixer.value_heads;
    for_rows(rows() * heads * width, [&](std::int64_t t) {
        kernels_.sigmoid(row(beta, t), heads, row(beta, t));
        kernels_.add(row(alpha, t), mixer.step_bias.data(), heads, row(alpha, t));
        kernels_.softplus(row(alpha, t), heads, row(alpha, t));
        kernels_.multiply(row(alpha, t), mixer.decay.data(), heads, row(alpha, t));
        kernels_.silu(row(gate, t), heads * width, row(gate, t));
    });
    for (const StepSlice& slice : step_->slices) {
        float* window = slice.state->recurrent(layer).data();
        float* matrices = window + (mixer.kernel - 1) * mixer.channels();
        convolve(mixer, qkv, slice, window);
        const float scale = 1.0f / std::sqrt(static_cast<float>(width));
        pool_.parallel_for(heads, 1, [&](std::int64_t head, std::int64_t end) {
            for (; head < end; ++head) {
                const std::int64_t key_head = head / (heads / mixer.key_heads);
                for (std::int64_t t = slice.first_row; t < slice.first_row + slice.count; ++t) {
                    const float* q = convolved_.data() + t * mixer.channels();
                    const float* k = q + mixer.key_heads * width;
                    const float* v = k + mixer.key_heads * width;
                    float* o = row(out, t) + head * width;
                    kernels_.delta_rule({.state = matrices + head * width * width,
                                         .query = q + key_head * width,
                                         .key = k + key_head * width,
                                         .value = v + head * width,
                                         .log_decay = row(alpha, t)[head],
                                         .beta = row(beta, t)[head],
                                         .scale = scale,
                                         .key_dim = width,
                                         .value_dim = width,
                                         .out = o});
                    kernels_.rms_norm(o, mixer.norm.data(), width, mixer.epsilon, o);
                    kernels_.multiply(o, row(gate, t) + head * width, width, o);
                }
            }
        });
    }
}

}  // namespace coterie::engine
