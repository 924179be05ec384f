#include "golden_case.h"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace coterie::golden {

std::filesystem::path directory() {
    const char* given = std::getenv("COTERIE_GOLDEN_DIR");
    return given && *given ? given : COTERIE_GOLDEN_CORE;
}

std::vector<Case> read_cases(const std::filesystem::path& directory) {
    std::ifstream file(directory / "manifest.json");
    if (!file) throw std::runtime_error("cannot read " + (directory / "manifest.json").string());
    const nlohmann::json manifest = nlohmann::json::parse(file);
    std::vector<Case> cases;
    for (const nlohmann::json& line : manifest.at("cases")) {
        Case c;
        c.id = line.at("id");
        c.architecture = line.at("architecture");
        c.model = directory / line.at("model").get<std::string>();
        c.logits = directory / line.at("logits").get<std::string>();
        c.tokens = line.at("tokens").get<std::vector<std::int32_t>>();
        c.vocabulary = line.at("n_vocab");
        c.bound_nmse = line.at("bound_nmse");
        c.top1 = line.at("top1").get<std::vector<std::int32_t>>();
        c.top1_margin = line.at("top1_margin").get<std::vector<double>>();
        c.top1_must_agree_above = line.at("top1_must_agree_above");
        cases.push_back(std::move(c));
    }
    return cases;
}

std::vector<float> read_floats(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) throw std::runtime_error("cannot read " + path.string());
    std::vector<float> values(static_cast<std::size_t>(file.tellg()) / sizeof(float));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(float)));
    return values;
}

double normalised_mean_squared_error(const std::vector<float>& a, const std::vector<float>& b) {
    double error = 0.0;
    double power = 0.0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
        error += difference * difference;
        power += static_cast<double>(b[i]) * static_cast<double>(b[i]);
    }
    return error / power;
}

}  // namespace coterie::golden
