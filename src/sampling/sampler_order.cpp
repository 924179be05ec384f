#include "sampling/sampler_order.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace coterie {
namespace {

using Name = std::pair<std::string_view, SamplerKind>;

constexpr std::array<Name, 9> kNames{{
    {"penalties", SamplerKind::Penalties},
    {"dry", SamplerKind::Dry},
    {"top_n_sigma", SamplerKind::TopNSigma},
    {"top_k", SamplerKind::TopK},
    {"typ_p", SamplerKind::TypP},
    {"top_p", SamplerKind::TopP},
    {"min_p", SamplerKind::MinP},
    {"xtc", SamplerKind::Xtc},
    {"temperature", SamplerKind::Temperature},
}};

/// Other spellings that are in use, with '_' for '-'.
constexpr std::array<Name, 5> kOtherNames{{
    {"typical_p", SamplerKind::TypP},
    {"typical", SamplerKind::TypP},
    {"typ", SamplerKind::TypP},
    {"nucleus", SamplerKind::TopP},
    {"temp", SamplerKind::Temperature},
}};

std::string_view trim(std::string_view text) {
    const std::size_t first = text.find_first_not_of(' ');
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

SamplerKind parse_name(std::string_view text) {
    std::string spelled(text);
    std::replace(spelled.begin(), spelled.end(), '-', '_');
    const auto matches = [&](const Name& name) { return name.first == spelled; };
    if (const auto* found = std::find_if(kNames.begin(), kNames.end(), matches); found != kNames.end()) {
        return found->second;
    }
    if (const auto* found = std::find_if(kOtherNames.begin(), kOtherNames.end(), matches);
        found != kOtherNames.end()) {
        return found->second;
    }
    fail(ErrorCode::InvalidArgument, "samplers: unknown sampler '{}'; known: {}", text,
         format_sampler_order(default_sampler_order()));
}

}  // namespace

std::string_view sampler_name(SamplerKind kind) {
    return std::find_if(kNames.begin(), kNames.end(), [&](const Name& name) { return name.second == kind; })
        ->first;
}

std::vector<SamplerKind> default_sampler_order() {
    std::vector<SamplerKind> order;
    for (const Name& name : kNames) order.push_back(name.second);
    return order;
}

std::vector<SamplerKind> parse_sampler_order(std::string_view text) {
    std::vector<SamplerKind> order;
    text = trim(text);
    if (text.empty()) return order;
    while (true) {
        const std::size_t end = text.find(';');
        const std::string_view name = trim(text.substr(0, end));
        const SamplerKind kind = parse_name(name);
        if (std::find(order.begin(), order.end(), kind) != order.end()) {
            fail(ErrorCode::InvalidArgument, "samplers: '{}' stands twice", name);
        }
        order.push_back(kind);
        if (end == std::string_view::npos) return order;
        text.remove_prefix(end + 1);
    }
}

std::string format_sampler_order(const std::vector<SamplerKind>& order) {
    std::string text;
    for (const SamplerKind kind : order) {
        if (!text.empty()) text += ';';
        text += sampler_name(kind);
    }
    return text;
}

}  // namespace coterie
