#include "cli/bench/measurement.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fmt/chrono.h>
#include <numeric>

#include "base/error.h"
#include "base/split_mix.h"
#include "cli/bad_logits.h"

namespace coterie::cli::bench {
namespace {

using engine::Slice;

constexpr std::uint64_t kTokenSeed = 0x636f7465726965;

std::vector<engine::TokenId> random_tokens(std::int64_t count, std::int64_t vocabulary) {
    SplitMix64 random(kTokenSeed);
    std::vector<engine::TokenId> tokens(static_cast<std::size_t>(count));
    for (engine::TokenId& token : tokens) {
        token = static_cast<engine::TokenId>(random.next() % static_cast<std::uint64_t>(vocabulary));
    }
    return tokens;
}

/// FNV-1a over the bits.
std::uint64_t checksum(std::span<const float> values) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const std::byte byte : std::as_bytes(values)) {
        hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3u;
    }
    return hash;
}

enum class EachStep { Logits, Silent };

/// Appends the tokens in steps of `step_tokens`. Logits are formed of every step's last token or of the last
/// step's only; the very last ones are checked and their checksum returned.
std::uint64_t compute(engine::Engine& engine, engine::Sequence& sequence,
                      std::span<const engine::TokenId> tokens, std::int64_t step_tokens, EachStep each) {
    std::uint64_t sum = 0;
    bool finite = true;
    bool last = false;
    const auto keep = [&](std::int64_t, std::span<const float> logits) {
        if (!last) return;
        finite = all_finite(logits);
        sum = checksum(logits);
    };
    while (!tokens.empty()) {
        const auto count = std::min(static_cast<std::size_t>(step_tokens), tokens.size());
        last = count == tokens.size();
        const bool wanted = last || each == EachStep::Logits;
        const Slice slice{.sequence = &sequence,
                          .tokens = tokens.first(count),
                          .logits = wanted ? Slice::Logits::Last : Slice::Logits::None};
        engine.step({&slice, 1}, keep);
        tokens = tokens.subspan(count);
    }
    if (!finite) refuse_bad_logits(engine.archive().name());
    return sum;
}

struct Repetition {
    double seconds;
    CacheUse cache;
    std::uint64_t logits_checksum;
};

/// The last logits' checksum.
std::uint64_t compute_test(engine::Engine& engine, engine::Sequence& sequence, const Test& test,
                           std::span<const engine::TokenId> tokens) {
    const auto prompt = tokens.first(static_cast<std::size_t>(test.prompt));
    std::uint64_t sum = 0;
    if (!prompt.empty()) sum = compute(engine, sequence, prompt, engine.longest_step(), EachStep::Silent);
    if (test.only_prompt()) return sum;
    return compute(engine, sequence, tokens.subspan(prompt.size()), 1, EachStep::Logits);
}

Repetition repeat(engine::Engine& engine, const Test& test, std::span<const engine::TokenId> tokens) {
    engine::Sequence sequence = engine.make_sequence();
    const auto depth = static_cast<std::size_t>(test.depth);
    if (depth > 0) compute(engine, sequence, tokens.first(depth), engine.longest_step(), EachStep::Silent);

    const CacheUse before = cache_use(engine);
    const auto start = std::chrono::steady_clock::now();
    const std::uint64_t sum = compute_test(engine, sequence, test, tokens.subspan(depth));
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    COTERIE_CHECK(sequence.length() == test.depth + test.tokens());
    CacheUse use = cache_use(engine) - before;
    if (test.only_generation()) add_kernel_reads(engine, use);
    return {elapsed.count(), use, sum};
}

}  // namespace

std::string name_of(const Test& test) {
    std::string name;
    if (test.prompt > 0) name = fmt::format("pp{}", test.prompt);
    if (test.generated > 0) name += fmt::format("{}tg{}", name.empty() ? "" : "+", test.generated);
    if (test.depth > 0) name += fmt::format(" @ d{}", test.depth);
    return name;
}

Statistics statistics(std::vector<double> values) {
    COTERIE_CHECK(!values.empty());
    const auto count = static_cast<double>(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
    double squares = 0.0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    const double median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2.0;
    return {mean, values.size() > 1 ? std::sqrt(squares / (count - 1.0)) : 0.0, median};
}

std::vector<double> rates(const Measurement& measurement) {
    std::vector<double> result;
    result.reserve(measurement.seconds.size());
    for (const double seconds : measurement.seconds) {
        result.push_back(static_cast<double>(measurement.test.tokens()) / seconds);
    }
    return result;
}

Measurement measure(engine::Engine& engine, const Test& test, const MeasureOptions& options) {
    const auto tokens = random_tokens(test.depth + test.tokens(), engine.config().vocabulary);
    if (options.warm_up) repeat(engine, test, tokens);
    Measurement measurement{
        .test = test,
        .start_time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
        .seconds = {},
        .logits_checksum = 0,
        .cache = {},
        .rates = {}};
    for (int i = 0; i < options.repetitions; ++i) {
        const Repetition repetition = repeat(engine, test, tokens);
        if (i > 0 && repetition.logits_checksum != measurement.logits_checksum) {
            fail(ErrorCode::Internal, "{}: repetitions of {} give different logits; please report it",
                 engine.archive().name(), name_of(test));
        }
        measurement.seconds.push_back(repetition.seconds);
        measurement.cache = measurement.cache + repetition.cache;
        measurement.logits_checksum = repetition.logits_checksum;
    }
    measurement.rates = path_rates(engine, options.machine);
    return measurement;
}

}  // namespace coterie::cli::bench
