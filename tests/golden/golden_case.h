#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace coterie::golden {

/// One line of manifest.json: a model, token ids, and what an independent engine computed for them.
struct Case {
    std::string id;
    std::string architecture;
    std::filesystem::path model;
    std::filesystem::path logits;  ///< little-endian float32 [tokens][vocabulary]
    std::vector<std::int32_t> tokens;
    std::int64_t vocabulary = 0;
    double bound_nmse = 0.0;
    std::vector<std::int32_t> top1;   ///< [tokens]
    std::vector<double> top1_margin;  ///< [tokens]
    double top1_must_agree_above = 0.0;
    std::filesystem::path routing;    ///< empty: none
    std::filesystem::path residuals;  ///< empty: none
    std::vector<std::int64_t> residuals_shape;
};

/// COTERIE_GOLDEN_DIR, else the core set.
std::filesystem::path directory();
std::vector<Case> read_cases(const std::filesystem::path& directory);
std::vector<float> read_floats(const std::filesystem::path& path);

/// mean((a - b)^2) / mean(b^2), b being exact.
double normalised_mean_squared_error(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace coterie::golden
