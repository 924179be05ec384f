#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/bench/cache_use.h"
#include "engine/engine.h"

namespace coterie::cli::bench {

/// One thing to measure, behind `depth` tokens of context: a prompt of some tokens, some generated ones, or
/// generated ones behind a prompt, timed together.
struct Test {
    std::int64_t prompt = 0;
    std::int64_t generated = 0;  ///< one of both is above 0
    std::int64_t depth = 0;

    std::int64_t tokens() const { return prompt + generated; }
    bool only_prompt() const { return generated == 0; }
    bool only_generation() const { return prompt == 0; }
};

/// "pp512", "tg128", "pp512+tg128", "pp512 @ d4096".
std::string name_of(const Test& test);

struct Measurement {
    Test test;
    std::string start_time;       ///< UTC, "2026-01-31T12:00:00Z"
    std::vector<double> seconds;  ///< per repetition
    std::uint64_t logits_checksum = 0;
    CacheUse cache = {};  ///< of all repetitions together, without their depth
    PathRates rates = {};
};

struct Statistics {
    double mean;
    double deviation;  ///< of a sample: divided by n - 1; 0 for one value
    double median;
};

/// Requires: values not empty.
Statistics statistics(std::vector<double> values);

/// Tokens per second, repetition by repetition.
std::vector<double> rates(const Measurement& measurement);

struct MeasureOptions {
    int repetitions = 5;
    bool warm_up = true;                              ///< one untimed repetition first
    const engine::MachineProfile* machine = nullptr;  ///< for what a GPU's paths carry; null: not known
};

/// Runs the test on random tokens of the whole vocabulary, the same ones in each repetition and on every
/// machine. Each repetition starts from a new sequence, so nothing is reused, and must compute exactly the
/// test's tokens. Throws InvalidFile where logits are not finite, and Internal where two repetitions differ.
Measurement measure(engine::Engine& engine, const Test& test, const MeasureOptions& options);

}  // namespace coterie::cli::bench
