#pragma once

#include "kernels/cpu/kernels.h"

/// The scalar law of every kernel in `cpu::KernelTable`, one plain file per op whose comment states the
/// expression and the order of its operations. Every other kernel gives these bits; NaN payloads alone are
/// free.
namespace coterie::reference {

void rms_norm(const float* x, const float* weight, std::int64_t n, float epsilon, float* out);
void l2_norm(const float* x, std::int64_t n, float epsilon, float* out);

void add(const float* a, const float* b, std::int64_t n, float* out);
void add_scaled(const float* x, float factor, std::int64_t n, float* out);
void multiply(const float* a, const float* b, std::int64_t n, float* out);

void swiglu(const float* gate, const float* up, std::int64_t n, float* out);
void swiglu_oai(const float* gate, const float* up, std::int64_t n, float* out);
void silu(const float* x, std::int64_t n, float* out);
void sigmoid(const float* x, std::int64_t n, float* out);
void softplus(const float* x, std::int64_t n, float* out);

void softmax(const float* x, std::int64_t n, float* out);
float dot_f32(const float* a, const float* b, std::int64_t n);

void rope_adjacent(float* head, const float* cosines, const float* sines, std::int64_t pairs);
void rope_halves(float* head, const float* cosines, const float* sines, std::int64_t pairs);

void store_cache(cpu::CacheType type, const float* x, std::int64_t n, std::byte* out);
/// Value i of a cache row, exactly.
float load_cache(cpu::CacheType type, const std::byte* row, std::int64_t i);

void attention(const cpu::AttentionArgs& args);
void delta_rule(const cpu::DeltaRuleArgs& args);

}  // namespace coterie::reference
