#pragma once

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace coterie::engine {

inline std::uint64_t seed() {
    const char* given = std::getenv("COTERIE_TEST_SEED");
    return given ? std::strtoull(given, nullptr, 10) : 20261130;
}

/// The models: one trained, and synthetic ones that between them have every kind of layer and of state.
struct TestModel {
    std::string name;
    std::string path;
    models::CacheFormat cache;
};

inline std::vector<TestModel> test_models() {
    const std::string root = COTERIE_SOURCE_DIR;
    using cpu::CacheType;
    return {
        {"demo", root + "/models/demo-dictionary-29m-q5_k_s.gguf", {CacheType::F16, CacheType::F16}},
        {"qwen3moe", root + "/tests/golden/models/qwen3moe-iq4_xs.gguf", {CacheType::Q8_0, CacheType::Q8_0}},
        {"gpt_oss", root + "/tests/golden/models/gpt-oss-mxfp4.gguf", {CacheType::F32, CacheType::F16}},
        {"deepseek2", root + "/tests/golden/models/deepseek2-v3-f16.gguf", {CacheType::F16, CacheType::F16}},
        {"qwen3next", root + "/tests/golden/models/qwen3next-bf16.gguf", {CacheType::F32, CacheType::F32}},
    };
}

using Rows = std::vector<std::vector<float>>;

/// Logits of every token, appended in one step.
inline Rows append(Engine& engine, Sequence& sequence, std::span<const TokenId> tokens) {
    Rows rows;
    const Slice slice{&sequence, tokens, Slice::Logits::All};
    engine.step({&slice, 1},
                [&](std::int64_t, std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); });
    return rows;
}

}  // namespace coterie::engine
