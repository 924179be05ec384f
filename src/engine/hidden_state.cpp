#include "engine/hidden_state.h"

#include "base/error.h"
#include "kernels/cpu/kernels.h"

namespace coterie::engine {

void final_hidden_state(const models::Model& model, const float* residual, std::span<float> out) {
    COTERIE_CHECK(static_cast<std::int64_t>(out.size()) == model.config.embedding);
    cpu::kernels().rms_norm(residual, model.output_norm.data(), model.config.embedding, model.config.epsilon,
                            out.data());
}

}  // namespace coterie::engine
