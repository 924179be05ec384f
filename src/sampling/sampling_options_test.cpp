#include "sampling/sampling_options.h"

#include <cmath>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace coterie {
namespace {

std::string refusal(const SamplingOptions& options) {
    try {
        check_ranges(options);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
        return error.what();
    }
    return "accepted";
}

TEST(SamplingOptions, DefaultsAreTheOnesPeopleKnow) {
    const SamplingOptions options;
    EXPECT_EQ(options.seed, -1);
    EXPECT_EQ(options.temperature, 0.8f);
    EXPECT_EQ(options.top_k, 40);
    EXPECT_EQ(options.top_p, 0.95f);
    EXPECT_EQ(options.min_p, 0.05f);
    EXPECT_EQ(options.repeat_last_n, 64);
    EXPECT_EQ(options.repeat_penalty, 1.0f);
    EXPECT_EQ(format_sampler_order(options.samplers),
              "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature");
    EXPECT_EQ(refusal(options), "accepted");
}

TEST(SamplingOptions, EveryFieldHasARange) {
    const std::vector<std::pair<std::string, float SamplingOptions::*>> reals{
        {"temperature", &SamplingOptions::temperature},
        {"dynatemp_range", &SamplingOptions::dynatemp_range},
        {"dynatemp_exponent", &SamplingOptions::dynatemp_exponent},
        {"top_p", &SamplingOptions::top_p},
        {"min_p", &SamplingOptions::min_p},
        {"typical_p", &SamplingOptions::typical_p},
        {"top_n_sigma", &SamplingOptions::top_n_sigma},
        {"xtc_probability", &SamplingOptions::xtc_probability},
        {"xtc_threshold", &SamplingOptions::xtc_threshold},
        {"repeat_penalty", &SamplingOptions::repeat_penalty},
        {"frequency_penalty", &SamplingOptions::frequency_penalty},
        {"presence_penalty", &SamplingOptions::presence_penalty},
        {"dry_multiplier", &SamplingOptions::dry_multiplier},
        {"dry_base", &SamplingOptions::dry_base},
        {"mirostat_tau", &SamplingOptions::mirostat_tau},
        {"mirostat_eta", &SamplingOptions::mirostat_eta},
    };
    for (const auto& [name, field] : reals) {
        for (const float value : {NAN, INFINITY, -INFINITY, 3e38f, -101.0f}) {
            SamplingOptions options;
            options.*field = value;
            EXPECT_THAT(refusal(options), testing::StartsWith(name + " is ")) << value;
        }
    }
    const std::vector<std::pair<std::string, std::int64_t SamplingOptions::*>> integers{
        {"seed", &SamplingOptions::seed},
        {"top_k", &SamplingOptions::top_k},
        {"repeat_last_n", &SamplingOptions::repeat_last_n},
        {"dry_allowed_length", &SamplingOptions::dry_allowed_length},
        {"dry_penalty_last_n", &SamplingOptions::dry_penalty_last_n},
        {"mirostat", &SamplingOptions::mirostat},
    };
    for (const auto& [name, field] : integers) {
        for (const std::int64_t value : {std::int64_t{-2}, std::int64_t{1} << 33, INT64_MAX, INT64_MIN}) {
            SamplingOptions options;
            options.*field = value;
            EXPECT_THAT(refusal(options), testing::StartsWith(name + " is ")) << value;
        }
    }
}

TEST(SamplingOptions, ZeroPenaltyWouldDivideByZero) {
    EXPECT_EQ(refusal({.repeat_penalty = 0}), "repeat_penalty is 0, must be from 0.01 to 100");
}

TEST(SamplerOrder, ReadsWhatItWrites) {
    EXPECT_EQ(parse_sampler_order(format_sampler_order(default_sampler_order())), default_sampler_order());
    EXPECT_EQ(format_sampler_order(parse_sampler_order("min_p;temperature")), "min_p;temperature");
    EXPECT_EQ(format_sampler_order(parse_sampler_order(" top-k; temp ;typical;nucleus;min-p")),
              "top_k;temperature;typ_p;top_p;min_p");
    EXPECT_TRUE(parse_sampler_order("").empty());
    EXPECT_TRUE(parse_sampler_order("  ").empty());
}

TEST(SamplerOrder, RefusesUnknownAndRepeatedNames) {
    const auto refused = [](std::string_view text) -> std::string {
        try {
            parse_sampler_order(text);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
            return error.what();
        }
        return "accepted";
    };
    EXPECT_THAT(refused("top_k;tpo_p"), testing::HasSubstr("unknown sampler 'tpo_p'; known: penalties;dry;"));
    EXPECT_THAT(refused("top_k;min_p;top-k"), testing::HasSubstr("'top-k' stands twice"));
    EXPECT_THAT(refused("top_k;;min_p"), testing::HasSubstr("unknown sampler ''"));
    EXPECT_THAT(refused("top_k;"), testing::HasSubstr("unknown sampler ''"));
}

}  // namespace
}  // namespace coterie
