#include "models/blocks/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "models/config_reader.h"

namespace coterie::models {

RopeScaling read_rope_scaling(const ConfigReader& config) {
    const auto key = [](const char* name) { return std::string("rope.scaling.") + name; };
    const gguf::Metadata& metadata = config.metadata();
    const std::string type_key = config.architecture() + "." + key("type");
    RopeScaling scaling;
    scaling.factor = config.positive_or_zero(key("factor"), 1.0);
    const std::string_view type = metadata.string(type_key, scaling.factor == 1.0 ? "none" : "linear");
    if (type == "yarn") {
        scaling.kind = RopeScaling::Kind::Yarn;
    } else if (type == "linear") {
        scaling.kind = RopeScaling::Kind::Linear;
    } else if (type != "none") {
        fail(ErrorCode::Unsupported, "{}: {} is '{}'; supported are none, linear and yarn", metadata.file(),
             type_key, type);
    }
    if (scaling.kind == RopeScaling::Kind::None) return scaling;
    scaling.factor = config.positive(key("factor"), 1.0);
    scaling.original_context = config.size(key("original_context_length"), config.size("context_length"));
    scaling.extrapolation = config.positive_or_zero(key("yarn_ext_factor"), 1.0);
    scaling.attention_factor =
        config.positive(key("yarn_attn_factor"), config.positive(key("attn_factor"), 1.0));
    scaling.beta_fast = config.positive(key("yarn_beta_fast"), 32.0);
    scaling.beta_slow = config.positive(key("yarn_beta_slow"), 1.0);
    return scaling;
}

std::vector<double> rope_frequencies(std::int64_t dimensions, double base, const RopeScaling& scaling,
                                     const Vector& factors) {
    const auto n = static_cast<double>(dimensions);
    const auto correction = [&](double rotations) {
        return n *
               std::log(static_cast<double>(scaling.original_context) /
                        (2.0 * std::numbers::pi * rotations)) /
               (2.0 * std::log(base));
    };
    double low = 0.0;
    double high = 0.0;
    if (scaling.kind == RopeScaling::Kind::Yarn) {
        low = std::max(0.0, std::floor(correction(scaling.beta_fast)));
        high = std::min(n - 1.0, std::ceil(correction(scaling.beta_slow)));
    }
    std::vector<double> frequencies(static_cast<std::size_t>(dimensions / 2));
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
        double frequency = std::pow(base, -2.0 * static_cast<double>(i) / n);
        if (!factors.empty()) frequency /= static_cast<double>(factors[i]);
        const double interpolated = frequency / scaling.factor;
        double keep = 0.0;  // the share of the unscaled frequency
        if (scaling.kind == RopeScaling::Kind::Yarn) {
            const double ramp = (static_cast<double>(i) - low) / std::max(0.001, high - low);
            keep = (1.0 - std::clamp(ramp, 0.0, 1.0)) * scaling.extrapolation;
        }
        frequencies[i] = scaling.kind == RopeScaling::Kind::None
                             ? frequency
                             : interpolated * (1.0 - keep) + frequency * keep;
    }
    return frequencies;
}

double rope_magnitude(const RopeScaling& scaling) {
    if (scaling.kind != RopeScaling::Kind::Yarn) return 1.0;
    return scaling.attention_factor * (1.0 + 0.1 * std::log(scaling.factor));
}

}  // namespace coterie::models
