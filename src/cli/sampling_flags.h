#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sampling/sampler_chain.h"
#include "tokenizer/tokenizer.h"

namespace CLI {
class App;
}

namespace coterie::cli {

/// The flags that say how tokens are drawn, with llama.cpp's names.
struct SamplingFlags {
    SamplingOptions options;
    std::string order;                    ///< --samplers
    std::vector<std::string> breakers;    ///< --dry-sequence-breaker
    std::vector<std::string> logit_bias;  ///< --logit-bias TOKEN(+|-)BIAS
    bool ignore_eos = false;
};

void add_sampling_flags(CLI::App& command, SamplingFlags& flags);

/// The options that the flags stand for. Throws InvalidArgument for values out of range, unknown samplers and
/// malformed biases.
SamplingOptions sampling_options(const SamplingFlags& flags);

/// A sampler for one answer. Throws as above.
std::unique_ptr<SamplerChain> make_sampler(const SamplingFlags& flags, const Tokenizer& tokenizer,
                                           std::int64_t vocabulary);

}  // namespace coterie::cli
