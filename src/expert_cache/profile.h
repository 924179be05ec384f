#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "expert_cache/expert_key.h"
#include "expert_cache/policy/ageing_count.h"

namespace coterie::expert_cache {

/// The model that a profile is of. Layers without experts count too.
struct ProfileShape {
    std::uint64_t model_hash = 0;  ///< 64 bits of its content
    std::int32_t layers = 0;
    std::int32_t experts = 0;  ///< per layer

    friend bool operator==(const ProfileShape&, const ProfileShape&) = default;
};

/// How often each expert was used over the last hours, to begin with the right experts next time and to share
/// slots between layers. A use of 32768 tokens ago counts half.
///
/// Measurements and calibration must not count: they would teach it what nobody asks for.
class RoutingProfile {
  public:
    using Clock = std::chrono::steady_clock;

    explicit RoutingProfile(const ProfileShape& shape);

    const ProfileShape& shape() const { return shape_; }

    /// `token` counts the tokens of this run and never decreases. Takes no memory.
    void used(ExpertKey key, std::int64_t token);

    /// Makes `uses` all that is known of the expert: for what was counted elsewhere.
    void set(ExpertKey key, double uses);

    /// [experts] uses, as of the last token counted anywhere in the model.
    std::vector<float> uses(std::int32_t layer) const;

    /// True ten minutes after it last was, or after the first question, where anything was counted meanwhile.
    bool should_save(Clock::time_point now);

    /// Replaces the file when the new one is complete. Throws Io.
    void save(const std::string& path) const;

  private:
    ProfileShape shape_;
    std::vector<AgeingCount> counts_;  ///< [layers]
    std::int64_t token_ = 0;
    bool counted_ = false;  ///< since the last save
    std::optional<Clock::time_point> last_save_;
};

/// A profile, or one line that says why there is none; no line where there simply is no file yet.
struct ProfileLoad {
    std::optional<RoutingProfile> profile;
    std::string ignored;
};

/// Reads what `save` wrote. Whatever is wrong with the file, the program can go on without it.
ProfileLoad load_profile(const std::string& path, const ProfileShape& shape);
/// The same of bytes; `name` is what the line calls them.
ProfileLoad parse_profile(std::span<const std::byte> bytes, const std::string& name,
                          const ProfileShape& shape);

/// From the counts that a model file may bring along (`moe_cache.expert_usage`: [layers][experts]). Only
/// their ranking is taken over, so that real use soon outweighs them.
ProfileLoad profile_from_usage(std::span<const std::uint32_t> usage, const ProfileShape& shape);

}  // namespace coterie::expert_cache
