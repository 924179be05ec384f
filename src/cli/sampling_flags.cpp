#include "cli/sampling_flags.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "sampling/dry_breakers.h"
#include "sampling/sampler_order.h"

namespace coterie::cli {
namespace {

/// "123+1.5", "123-inf": a token and what its logit gains.
TokenBias parse_bias(const std::string& text) {
    const std::size_t sign = text.find_first_of("+-");
    TokenBias bias{};
    const char* end = text.data() + std::min(sign, text.size());
    const auto id = std::from_chars(text.data(), end, bias.token);
    const bool negative = sign != std::string::npos && text[sign] == '-';
    const std::string value = sign == std::string::npos ? "" : text.substr(sign + 1);
    float amount = 0.0f;
    bool valid = id.ec == std::errc() && id.ptr == end && !value.empty() && value[0] != '-';
    if (value == "inf") {
        amount = std::numeric_limits<float>::infinity();
    } else if (valid) {
        const auto number = std::from_chars(value.data(), value.data() + value.size(), amount);
        valid = number.ec == std::errc() && number.ptr == value.data() + value.size();
    }
    if (!valid)
        fail(ErrorCode::InvalidArgument, "--logit-bias {}: write TOKEN+BIAS or TOKEN-BIAS, like 42-1.5",
             text);
    bias.bias = negative ? -amount : amount;
    return bias;
}

}  // namespace

void add_sampling_flags(CLI::App& command, SamplingFlags& flags) {
    SamplingOptions& o = flags.options;
    const auto add = [&](const char* name, auto& value, const char* help) {
        command.add_option(name, value, help)->capture_default_str()->group("Sampling");
    };
    add("-s,--seed", o.seed, "-1: random");
    add("--temp,--temperature", o.temperature, "0: always the most likely token");
    add("--dynatemp-range", o.dynatemp_range, "0: off");
    add("--dynatemp-exp", o.dynatemp_exponent, "exponent of the dynamic temperature");
    add("--top-k", o.top_k, "0: off");
    add("--top-p", o.top_p, "1: off");
    add("--min-p", o.min_p, "0: off");
    add("--typical,--typical-p", o.typical_p, "1: off");
    add("--top-nsigma,--top-n-sigma", o.top_n_sigma, "-1: off");
    add("--xtc-probability", o.xtc_probability, "0: off");
    add("--xtc-threshold", o.xtc_threshold, "above 0.5: off");
    add("--repeat-last-n", o.repeat_last_n, "tokens that penalties look at; 0: off, -1: all");
    add("--repeat-penalty", o.repeat_penalty, "1: off");
    add("--presence-penalty", o.presence_penalty, "0: off");
    add("--frequency-penalty", o.frequency_penalty, "0: off");
    add("--dry-multiplier", o.dry_multiplier, "0: off");
    add("--dry-base", o.dry_base, "growth of the penalty with the repetition's length");
    add("--dry-allowed-length", o.dry_allowed_length, "longest repetition without a penalty");
    add("--dry-penalty-last-n", o.dry_penalty_last_n, "0: off, -1: all");
    command
        .add_option("--dry-sequence-breaker", flags.breakers, "text that ends repetitions; 'none' for none")
        ->group("Sampling");
    add("--mirostat", o.mirostat, "0: off, 1 or 2");
    add("--mirostat-ent", o.mirostat_tau, "target surprise");
    add("--mirostat-lr", o.mirostat_eta, "learning rate");
    command.add_option("-l,--logit-bias", flags.logit_bias, "TOKEN+BIAS or TOKEN-BIAS, like 42-1.5")
        ->group("Sampling");
    flags.order = format_sampler_order(o.samplers);
    command.add_option("--samplers", flags.order, "samplers in their order, ';' between them")
        ->capture_default_str()
        ->group("Sampling");
    command.add_flag("--ignore-eos", flags.ignore_eos, "do not stop at end tokens")->group("Sampling");
}

SamplingOptions sampling_options(const SamplingFlags& flags) {
    SamplingOptions options = flags.options;
    options.samplers = parse_sampler_order(flags.order);
    for (const std::string& bias : flags.logit_bias) options.logit_bias.push_back(parse_bias(bias));
    if (!flags.breakers.empty()) options.dry_sequence_breakers = flags.breakers;
    if (flags.breakers == std::vector<std::string>{"none"}) options.dry_sequence_breakers.clear();
    check_ranges(options);
    return options;
}

std::unique_ptr<SamplerChain> make_sampler(const SamplingFlags& flags, const Tokenizer& tokenizer,
                                           std::int64_t vocabulary) {
    SamplingOptions options = sampling_options(flags);
    if (flags.ignore_eos) {
        for (const TokenId token : tokenizer.vocabulary().end_of_generation()) {
            options.logit_bias.push_back({token, -std::numeric_limits<float>::infinity()});
        }
    }
    // Rows of the output matrix beyond the vocabulary have no text and are never drawn.
    const auto known = static_cast<std::int64_t>(tokenizer.vocabulary_size());
    for (std::int64_t id = known; id < vocabulary; ++id) {
        options.logit_bias.push_back(
            {static_cast<std::int32_t>(id), -std::numeric_limits<float>::infinity()});
    }
    const auto piece = [&](std::int32_t id) { return tokenizer.piece(id); };
    return std::make_unique<SamplerChain>(
        options, vocabulary,
        options.dry_multiplier > 0.0f
            ? dry_breaker_tokens(options.dry_sequence_breakers, static_cast<std::int32_t>(known), piece)
            : std::vector<std::int32_t>{});
}

}  // namespace coterie::cli
