#include "models/config_reader.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace coterie::models {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 31;

cpu::Gating gating_of(const ConfigReader& reader, std::int64_t code) {
    switch (code) {
        case 1:
            return cpu::Gating::Softmax;
        case 2:
            return cpu::Gating::Sigmoid;
        case 3:
            return cpu::Gating::SoftmaxOfSelected;
        default:
            reader.refuse("expert_gating_func",
                          "is " + std::to_string(code) +
                              "; supported are 1 (softmax), 2 (sigmoid), 3 (softmax of the selected)");
    }
}

}  // namespace

ConfigReader::ConfigReader(const gguf::Metadata& metadata)
    : metadata_(&metadata), architecture_(metadata.string("general.architecture")) {}

void ConfigReader::refuse(std::string_view key, std::string_view reason) const {
    fail(ErrorCode::InvalidFile, "{}: {} {}", metadata_->file(), full(key), reason);
}

std::int64_t ConfigReader::checked(std::string_view key, std::int64_t value, std::int64_t lowest) const {
    if (value < lowest || value >= kLargest) {
        refuse(key, fmt::format("is {}; it must be at least {} and below 2^31", value, lowest));
    }
    return value;
}

std::int64_t ConfigReader::size(std::string_view key) const {
    return checked(key, metadata_->integer(full(key)), 1);
}

std::int64_t ConfigReader::size(std::string_view key, std::int64_t fallback) const {
    return has(key) ? size(key) : fallback;
}

std::int64_t ConfigReader::count(std::string_view key, std::int64_t fallback) const {
    return checked(key, metadata_->integer(full(key), fallback), 0);
}

double ConfigReader::positive(std::string_view key) const {
    const double value = metadata_->number(full(key));
    const auto used = static_cast<float>(value);
    if (!(used > 0.0f) || !std::isfinite(used))
        refuse(key, fmt::format("is {}; it must be above 0 and a number of 32 bits", value));
    return value;
}

double ConfigReader::positive(std::string_view key, double fallback) const {
    return has(key) ? positive(key) : fallback;
}

double ConfigReader::positive_or_zero(std::string_view key, double fallback) const {
    if (!has(key)) return fallback;
    return metadata_->number(full(key)) == 0.0 ? 0.0 : positive(key);
}

std::int64_t ConfigReader::uniform_size(std::string_view key, std::int64_t layers) const {
    const std::vector<std::int64_t> values =
        metadata_->integers_per_layer(full(key), static_cast<std::size_t>(layers));
    if (!std::all_of(values.begin(), values.begin() + layers,
                     [&](std::int64_t v) { return v == values[0]; })) {
        refuse(key,
               "differs between layers, which this program does not support for '" + architecture_ + "'");
    }
    return checked(key, values[0], 1);
}

ModelConfig ConfigReader::common() const {
    ModelConfig config;
    config.architecture = architecture_;
    config.name = metadata_->string("general.name", "unnamed");
    const std::int64_t blocks = size("block_count");
    config.prediction_layers = count("nextn_predict_layers", 0);
    config.layers = blocks - config.prediction_layers;
    if (config.layers < 1) refuse("nextn_predict_layers", "leaves no layer of block_count");
    config.embedding = size("embedding_length");
    config.context = size("context_length");
    config.epsilon = static_cast<float>(positive("attention.layer_norm_rms_epsilon"));
    config.experts = count("expert_count", 0);
    config.experts_used = count("expert_used_count", 0);
    if (config.experts > 0 && config.experts_used > config.experts) {
        refuse("expert_used_count", "is above expert_count");
    }
    if (config.experts > 0 && config.experts_used == 0) refuse("expert_used_count", "is missing or 0");
    return config;
}

cpu::Routing ConfigReader::routing(const RoutingDefaults& defaults) const {
    cpu::Routing routing;
    const std::int64_t gating = count("expert_gating_func", 0);
    routing.gating = gating == 0 ? defaults.gating : gating_of(*this, gating);
    routing.experts = size("expert_count");
    routing.used = size("expert_used_count");
    routing.groups = std::max<std::int64_t>(1, count("expert_group_count", 1));
    routing.groups_used = std::max<std::int64_t>(1, count("expert_group_used_count", 1));
    if (routing.experts % routing.groups != 0) refuse("expert_group_count", "does not divide expert_count");
    if (routing.groups_used > routing.groups)
        refuse("expert_group_used_count", "is above expert_group_count");
    if (routing.groups_used * (routing.experts / routing.groups) < routing.used) {
        refuse("expert_group_used_count", "leaves fewer experts than expert_used_count");
    }
    routing.normalise = boolean("expert_weights_norm", defaults.normalise);
    const double scale = positive_or_zero("expert_weights_scale", 0.0);
    routing.scale = scale == 0.0 ? 1.0f : static_cast<float>(scale);
    return routing;
}

}  // namespace coterie::models
