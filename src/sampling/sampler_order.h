#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace coterie {

/// The samplers whose order can be chosen.
enum class SamplerKind { Penalties, Dry, TopNSigma, TopK, TypP, TopP, MinP, Xtc, Temperature };

std::string_view sampler_name(SamplerKind kind);

/// penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature
std::vector<SamplerKind> default_sampler_order();

/// Reads names separated by semicolons; nothing is a plain draw. Throws InvalidArgument for unknown and
/// repeated names.
std::vector<SamplerKind> parse_sampler_order(std::string_view text);

/// What `parse_sampler_order` reads.
std::string format_sampler_order(const std::vector<SamplerKind>& order);

}  // namespace coterie
