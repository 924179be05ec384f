#include <cmath>

#include "kernels/reference/lanes.h"
#include "kernels/reference/reference.h"
#include "kernels/reference/transcendental.h"

namespace coterie::reference {

// g = exp(log_decay). Each value's row S of the state by itself, sums in 32 lanes over key_dim:
//   S[i] = S[i] * g;  d = beta * (v - dot(S, k));  S[i] = fma(d, k[i], S[i]);  out = dot(S, q) * scale
void delta_rule(const cpu::DeltaRuleArgs& args) {
    const float decay = exp(args.log_decay);
    for (std::int64_t row = 0; row < args.value_dim; ++row) {
        float* state = args.state + row * args.key_dim;
        for (std::int64_t i = 0; i < args.key_dim; ++i) state[i] *= decay;
        const float delta = args.beta * (args.value[row] - dot(state, args.key, args.key_dim));
        for (std::int64_t i = 0; i < args.key_dim; ++i) state[i] = std::fma(delta, args.key[i], state[i]);
        args.out[row] = dot(state, args.query, args.key_dim) * args.scale;
    }
}

}  // namespace coterie::reference
