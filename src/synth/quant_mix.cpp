#include "synth/quant_mix.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/error.h"

namespace coterie::synth {
namespace {

using Role = MatrixRole;
using Type = DataType;

/// A matrix as the exceptions of a mix see it.
struct Context {
    Role role;
    std::int64_t layer;
    std::int64_t layers;
    std::int64_t group_size;
    std::int64_t experts;

    bool is_down() const { return role == Role::FfnDown || role == Role::ExpertDown; }
    bool is_expert() const {
        return role == Role::ExpertGate || role == Role::ExpertUp || role == Role::ExpertDown;
    }
    bool first_eighth() const { return layer < layers / 8; }
    bool wide_groups() const { return group_size >= 4; }
    bool eight_experts() const { return experts == 8; }

    /// The first and the last eighth of the layers and every third between: those get more bits.
    bool more_bits() const {
        const std::int64_t eighth = layers / 8;
        return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
    }
};

/// The type where the mix makes an exception.
using Exceptions = std::optional<Type> (*)(const Context&);

std::optional<Type> output_q6(const Context& c) {
    if (c.role == Role::Output) return Type::Q6_K;
    return std::nullopt;
}

std::optional<Type> q4_k_m(const Context& c) {
    if (c.eight_experts()) {
        if (c.role == Role::Value || c.role == Role::Key) return Type::Q8_0;
        if (c.role == Role::AttentionOutput) return Type::Q5_K;
    }
    if ((c.role == Role::Value || c.is_down()) && c.more_bits()) return Type::Q6_K;
    return output_q6(c);
}

std::optional<Type> q4_k_s(const Context& c) {
    if (c.role == Role::Value && c.layer < 4) return Type::Q5_K;
    if (c.is_down() && c.first_eighth()) return Type::Q5_K;
    return output_q6(c);
}

std::optional<Type> q5_k_m(const Context& c) {
    if ((c.role == Role::Value || c.is_down()) && c.more_bits()) return Type::Q6_K;
    return output_q6(c);
}

std::optional<Type> q3_k_m(const Context& c) {
    if (c.role == Role::Value) return c.layer < 2 ? Type::Q5_K : Type::Q4_K;
    if (c.is_down()) return c.layer < c.layers / 16 ? Type::Q5_K : Type::Q4_K;
    if (c.role == Role::AttentionOutput) return Type::Q4_K;
    return output_q6(c);
}

std::optional<Type> q3_k_l(const Context& c) {
    if (c.role == Role::Value || c.is_down() || c.role == Role::AttentionOutput) return Type::Q5_K;
    return output_q6(c);
}

std::optional<Type> q2_k(const Context& c) {
    if (c.role == Role::Value) return c.wide_groups() ? Type::Q4_K : Type::Q3_K;
    if (c.is_down() || c.role == Role::AttentionOutput) return Type::Q3_K;
    return output_q6(c);
}

std::optional<Type> q2_k_s(const Context& c) {
    if (c.role == Role::Value && c.wide_groups()) return Type::Q4_K;
    if (c.is_down() && c.first_eighth()) return Type::Q4_K;
    return output_q6(c);
}

std::optional<Type> iq4(const Context& c) {
    if (c.role == Role::Value && c.wide_groups()) return Type::Q5_K;
    if (c.is_down() && c.first_eighth()) return Type::Q5_K;
    return output_q6(c);
}

std::optional<Type> iq3_xxs(const Context& c) {
    switch (c.role) {
        case Role::TokenEmbedding:
            return Type::IQ3_S;
        case Role::Query:
        case Role::Key:
            return Type::IQ2_S;
        case Role::Value:
            return c.wide_groups() ? Type::Q4_K : Type::IQ3_S;
        case Role::AttentionOutput:
            return c.eight_experts() ? Type::Q5_K : Type::IQ3_S;
        case Role::Output:
            return Type::Q5_K;
        default:
            return std::nullopt;
    }
}

std::optional<Type> iq3_xs(const Context& c) {
    if (c.role == Role::Query || c.role == Role::Key) return Type::IQ3_XXS;
    if (c.role == Role::Value && c.wide_groups()) return Type::Q4_K;
    return output_q6(c);
}

std::optional<Type> iq3_s(const Context& c) {
    if (c.role == Role::Value && c.wide_groups()) return Type::Q4_K;
    return output_q6(c);
}

std::optional<Type> iq3_m(const Context& c) {
    if (c.role == Role::Value || c.role == Role::AttentionOutput) return Type::Q4_K;
    if (c.is_down() && c.first_eighth()) return Type::Q4_K;
    return output_q6(c);
}

/// The mixes below 3 bits: `small` is what embedding and early down matrices get.
std::optional<Type> below_three_bits(const Context& c, Type small, std::optional<Type> attention_output) {
    switch (c.role) {
        case Role::TokenEmbedding:
            return small;
        case Role::Value:
            return c.wide_groups() || c.experts >= 4 ? Type::Q4_K : small;
        case Role::AttentionOutput:
            return attention_output;
        case Role::Output:
            return Type::Q5_K;
        default:
            if (c.is_down() && c.first_eighth()) return small;
            return std::nullopt;
    }
}

std::optional<Type> iq2(const Context& c) { return below_three_bits(c, Type::Q2_K, std::nullopt); }
std::optional<Type> iq2_s(const Context& c) { return below_three_bits(c, Type::IQ3_S, Type::IQ3_S); }
std::optional<Type> iq1(const Context& c) { return below_three_bits(c, Type::Q2_K, Type::IQ2_XXS); }

/// As gpt-oss is published: only the experts have four bits.
std::optional<Type> mxfp4_experts(const Context& c) {
    if (c.is_expert()) return std::nullopt;
    return Type::Q8_0;
}

std::optional<Type> none(const Context&) { return std::nullopt; }

struct NamedMix {
    std::string_view name;
    std::uint32_t file_type;
    Type base;
    Exceptions exceptions;
};

constexpr NamedMix kMixes[] = {
    {"f32", 0, Type::F32, none},           {"f16", 1, Type::F16, none},
    {"bf16", 32, Type::BF16, none},        {"q8_0", 7, Type::Q8_0, none},
    {"q6_k", 18, Type::Q6_K, none},        {"q5_k_m", 17, Type::Q5_K, q5_k_m},
    {"q5_k_s", 16, Type::Q5_K, output_q6}, {"q5_1", 9, Type::Q5_1, output_q6},
    {"q5_0", 8, Type::Q5_0, output_q6},    {"q4_k_m", 15, Type::Q4_K, q4_k_m},
    {"q4_k_s", 14, Type::Q4_K, q4_k_s},    {"q4_1", 3, Type::Q4_1, output_q6},
    {"q4_0", 2, Type::Q4_0, output_q6},    {"iq4_nl", 25, Type::IQ4_NL, iq4},
    {"iq4_xs", 30, Type::IQ4_XS, iq4},     {"mxfp4", 38, Type::MXFP4, mxfp4_experts},
    {"nvfp4", 39, Type::NVFP4, output_q6}, {"q3_k_l", 13, Type::Q3_K, q3_k_l},
    {"q3_k_m", 12, Type::Q3_K, q3_k_m},    {"q3_k_s", 11, Type::Q3_K, output_q6},
    {"iq3_m", 27, Type::IQ3_S, iq3_m},     {"iq3_s", 26, Type::IQ3_S, iq3_s},
    {"iq3_xs", 22, Type::IQ3_S, iq3_xs},   {"iq3_xxs", 23, Type::IQ3_XXS, iq3_xxs},
    {"q2_k", 10, Type::Q2_K, q2_k},        {"q2_k_s", 21, Type::Q2_K, q2_k_s},
    {"iq2_m", 29, Type::IQ2_S, iq2_s},     {"iq2_s", 28, Type::IQ2_XS, iq2_s},
    {"iq2_xs", 20, Type::IQ2_XS, iq2},     {"iq2_xxs", 19, Type::IQ2_XXS, iq2},
    {"tq2_0", 37, Type::TQ2_0, output_q6}, {"tq1_0", 36, Type::TQ1_0, output_q6},
    {"iq1_m", 31, Type::IQ1_M, iq1},       {"iq1_s", 24, Type::IQ1_S, iq1},
};

constexpr std::string_view kPurePrefix = "pure-";

std::string lower_case(std::string_view text) {
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return result;
}

const NamedMix* find_mix(std::string_view name) {
    const auto* found =
        std::find_if(std::begin(kMixes), std::end(kMixes), [&](const NamedMix& m) { return m.name == name; });
    return found == std::end(kMixes) ? nullptr : found;
}

/// The file type of the mix that is mostly of this type; informative only.
std::uint32_t file_type_of(Type type) {
    for (const NamedMix& mix : kMixes) {
        if (mix.base == type) return mix.file_type;
    }
    return type == Type::Q1_0 ? 40 : 41;
}

Type next_smaller_block(Type type) {
    switch (type) {
        case Type::Q2_K:
        case Type::Q3_K:
        case Type::TQ1_0:
        case Type::TQ2_0:
        case Type::Q1_0:
        case Type::Q2_0:
        case Type::NVFP4:
            return Type::Q4_0;
        case Type::Q4_K:
            return Type::Q5_0;
        case Type::Q5_K:
            return Type::Q5_1;
        case Type::Q6_K:
            return Type::Q8_0;
        default:
            return traits(type).block_values == 256 ? Type::IQ4_NL : Type::F16;
    }
}

}  // namespace

DataType fitting_type(DataType type, std::int64_t columns) {
    while (columns % traits(type).block_values != 0) type = next_smaller_block(type);
    return type;
}

QuantMix::QuantMix(std::string_view name) : name_(lower_case(name)), pure_(name_.starts_with(kPurePrefix)) {
    if (pure_) {
        const DataTypeTraits* type = find_data_type(std::string_view(name_).substr(kPurePrefix.size()));
        if (type && type->dot) {
            base_ = type->type;
            file_type_ = file_type_of(base_);
            return;
        }
    } else if (const NamedMix* mix = find_mix(name_)) {
        base_ = mix->base;
        file_type_ = mix->file_type;
        return;
    }
    fail(ErrorCode::InvalidArgument,
         "no quantisation is named '{}'; choose one of {}, or pure-TYPE for one type everywhere (pure-q4_k)",
         name, quant_mix_names());
}

DataType QuantMix::type_of(const Shape& shape, std::int64_t layers, const MatrixPlace& place) const {
    DataType type = base_;
    if (!pure_) {
        const Context context{place.role, place.layer, layers, shape.group_size(), shape.experts};
        type = find_mix(name_)->exceptions(context).value_or(base_);
    }
    return fitting_type(type, place.columns);
}

std::string quant_mix_names() {
    std::string names;
    for (const NamedMix& mix : kMixes) {
        if (!names.empty()) names += ", ";
        names += mix.name;
    }
    return names;
}

}  // namespace coterie::synth
