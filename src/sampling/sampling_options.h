#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sampling/sampler_order.h"
#include "sampling/samplers/samplers.h"

namespace coterie {

/// How tokens are drawn. Names and defaults are those of llama.cpp's flags and request fields; a value named
/// "off" leaves its sampler out.
struct SamplingOptions {
    std::int64_t seed = -1;  ///< -1 (or 4294967295): random, SamplerChain::seed() tells which

    /// 0 is greedy: the highest logit after biases and penalties, the lowest id on ties; all filters are left
    /// out.
    float temperature = 0.8f;
    float dynatemp_range = 0.0f;  ///< 0: off
    float dynatemp_exponent = 1.0f;

    std::int64_t top_k = 40;       ///< 0 or -1: off
    float top_p = 0.95f;           ///< 1: off
    float min_p = 0.05f;           ///< 0: off
    float typical_p = 1.0f;        ///< 1: off
    float top_n_sigma = -1.0f;     ///< 0 or -1: off
    float xtc_probability = 0.0f;  ///< 0: off
    float xtc_threshold = 0.1f;

    std::int64_t repeat_last_n = 64;  ///< 0: penalties off, -1: whole sequence
    float repeat_penalty = 1.0f;
    float frequency_penalty = 0.0f;
    float presence_penalty = 0.0f;

    float dry_multiplier = 0.0f;  ///< 0: off
    float dry_base = 1.75f;
    std::int64_t dry_allowed_length = 2;
    std::int64_t dry_penalty_last_n = -1;  ///< 0: off, -1: whole sequence
    std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};

    std::int64_t mirostat =
        0;  ///< 1 or 2: temperature and Mirostat of that version alone, in place of `samplers`
    float mirostat_tau = 5.0f;
    float mirostat_eta = 0.1f;

    std::vector<TokenBias> logit_bias = {};  ///< applied before all samplers
    std::vector<SamplerKind> samplers = default_sampler_order();
};

/// Throws InvalidArgument that names the first field out of its range; NaN always is.
void check_ranges(const SamplingOptions& options);

}  // namespace coterie
