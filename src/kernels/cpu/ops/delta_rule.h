#pragma once

// The gated delta rule; kernels/reference/delta_rule.cpp is the law.
namespace coterie::cpu::COTERIE_ISA {
namespace {

/// state = state * decay; returns dot(state, key).
inline float decay_and_read(float* state, float decay, const float* key, std::int64_t n) {
    const Vector d = broadcast(decay);
    LaneSum total;
    for (std::int64_t i = 0; i < n; i += kLanes) {
        for (int j = 0; j < kLaneVectors; ++j) {
            const std::int64_t at = i + j * kWidth;
            store_first(state + at, load_first(state + at, n - at) * d, n - at);
            // Read again: beyond the row the product of +0 and an infinite decay would be NaN.
            total.lanes[j] =
                fma(load_first(state + at, n - at), load_first(key + at, n - at), total.lanes[j]);
        }
    }
    return total.sum();
}

/// state = fma(delta, key, state); returns dot(state, query).
inline float write_and_read(float* state, float delta, const float* key, const float* query, std::int64_t n) {
    const Vector d = broadcast(delta);
    LaneSum total;
    for (std::int64_t i = 0; i < n; i += kLanes) {
        for (int j = 0; j < kLaneVectors; ++j) {
            const std::int64_t at = i + j * kWidth;
            const Vector updated = fma(d, load_first(key + at, n - at), load_first(state + at, n - at));
            store_first(state + at, updated, n - at);
            total.lanes[j] =
                fma(load_first(state + at, n - at), load_first(query + at, n - at), total.lanes[j]);
        }
    }
    return total.sum();
}

void delta_rule(const DeltaRuleArgs& args) {
    const float decay = exp(args.log_decay);
    for (std::int64_t row = 0; row < args.value_dim; ++row) {
        float* state = args.state + row * args.key_dim;
        const float read = decay_and_read(state, decay, args.key, args.key_dim);
        const float delta = args.beta * (args.value[row] - read);
        args.out[row] = write_and_read(state, delta, args.key, args.query, args.key_dim) * args.scale;
    }
}

}  // namespace
}  // namespace coterie::cpu::COTERIE_ISA
