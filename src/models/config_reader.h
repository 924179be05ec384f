#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"
#include "models/model.h"

namespace coterie::models {

/// Reads a model's hyper-parameters, `<architecture>.<key>`, and checks their ranges: whatever it returns can
/// be used as a size. Throws InvalidFile naming file and key.
class ConfigReader {
  public:
    explicit ConfigReader(const gguf::Metadata& metadata);

    const gguf::Metadata& metadata() const { return *metadata_; }
    const std::string& architecture() const { return architecture_; }

    bool has(std::string_view key) const { return metadata_->has(full(key)); }
    /// A size or count in [1, 2^31).
    std::int64_t size(std::string_view key) const;
    std::int64_t size(std::string_view key, std::int64_t fallback) const;
    /// A count in [0, 2^31), `fallback` where the key is missing.
    std::int64_t count(std::string_view key, std::int64_t fallback) const;
    /// A number above 0, in binary32 too: a base, a scale, a divisor.
    double positive(std::string_view key) const;
    double positive(std::string_view key, double fallback) const;
    /// A number that may be 0 where that stands for none, and is not below.
    double positive_or_zero(std::string_view key, double fallback) const;
    bool boolean(std::string_view key, bool fallback) const {
        return metadata_->boolean(full(key), fallback);
    }
    /// A size that may be one number or one per layer, but is the same for all layers in this architecture.
    std::int64_t uniform_size(std::string_view key, std::int64_t layers) const;

    /// What every architecture has.
    ModelConfig common() const;

    /// Gating, normalisation, scale and groups, with the architecture's defaults.
    struct RoutingDefaults {
        cpu::Gating gating;
        bool normalise;
    };
    cpu::Routing routing(const RoutingDefaults& defaults) const;

    [[noreturn]] void refuse(std::string_view key, std::string_view reason) const;

  private:
    std::string full(std::string_view key) const { return architecture_ + "." + std::string(key); }
    std::int64_t checked(std::string_view key, std::int64_t value, std::int64_t lowest) const;

    const gguf::Metadata* metadata_;
    std::string architecture_;
};

}  // namespace coterie::models
