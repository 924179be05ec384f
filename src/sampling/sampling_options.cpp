#include "sampling/sampling_options.h"

#include <limits>
#include <string_view>

#include "base/error.h"

namespace coterie {
namespace {

template <typename T>
void check(std::string_view field, T value, T lowest, T highest) {
    if (value >= lowest && value <= highest) return;  // false for NaN
    fail(ErrorCode::InvalidArgument, "{} is {}, must be from {} to {}", field, value, lowest, highest);
}

constexpr std::int64_t kLargestCount = std::numeric_limits<std::int32_t>::max();

}  // namespace

void check_ranges(const SamplingOptions& options) {
    check<std::int64_t>("seed", options.seed, -1, std::numeric_limits<std::uint32_t>::max());
    check("temperature", options.temperature, 0.0f, 1e9f);
    check("dynatemp_range", options.dynatemp_range, 0.0f, 1e9f);
    check("dynatemp_exponent", options.dynatemp_exponent, 0.0f, 100.0f);
    check<std::int64_t>("top_k", options.top_k, -1, kLargestCount);
    check("top_p", options.top_p, 0.0f, 1.0f);
    check("min_p", options.min_p, 0.0f, 1.0f);
    check("typical_p", options.typical_p, 0.0f, 1.0f);
    check("top_n_sigma", options.top_n_sigma, -1.0f, 1e6f);
    check("xtc_probability", options.xtc_probability, 0.0f, 1.0f);
    check("xtc_threshold", options.xtc_threshold, 0.0f, 1.0f);
    check<std::int64_t>("repeat_last_n", options.repeat_last_n, -1, kLargestCount);
    check("repeat_penalty", options.repeat_penalty, 0.01f, 100.0f);
    check("frequency_penalty", options.frequency_penalty, -100.0f, 100.0f);
    check("presence_penalty", options.presence_penalty, -100.0f, 100.0f);
    check("dry_multiplier", options.dry_multiplier, 0.0f, 100.0f);
    check("dry_base", options.dry_base, 1.0f, 100.0f);
    check<std::int64_t>("dry_allowed_length", options.dry_allowed_length, 0, kLargestCount);
    check<std::int64_t>("dry_penalty_last_n", options.dry_penalty_last_n, -1, kLargestCount);
    check<std::int64_t>("mirostat", options.mirostat, 0, 2);
    check("mirostat_tau", options.mirostat_tau, 0.0f, 100.0f);
    check("mirostat_eta", options.mirostat_eta, 0.0f, 10.0f);
}

}  // namespace coterie
