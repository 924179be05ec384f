// What RoutingProfile::save writes. Numbers are little endian.
//
//     bytes  what
//     0      kMagic
//     8      format version (4), zero (4)
//     16     hash of the model
//     24     layers (4), experts per layer (4)
//     32     uses as float32 [layers][experts]
//            XXH64 of everything before

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <xxhash.h>

#include "base/atomic_file.h"
#include "expert_cache/profile.h"

namespace coterie::expert_cache {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kMagic = 0x31'46'4F'52'50'43'43'7F;  // "\x7F" "CCPROF1"
constexpr std::uint32_t kVersion = 1;
constexpr double kUsageScale = 1000.0;  ///< uses of a layer's most used expert

struct Header {
    std::uint64_t magic = kMagic;
    std::uint32_t version = kVersion;
    std::uint32_t zero = 0;
    std::uint64_t model_hash = 0;
    std::int32_t layers = 0;
    std::int32_t experts = 0;
};
static_assert(sizeof(Header) == 32);

std::size_t count_bytes(const ProfileShape& shape) {
    return sizeof(float) * static_cast<std::size_t>(shape.layers) * static_cast<std::size_t>(shape.experts);
}

std::size_t file_bytes(const ProfileShape& shape) {
    return sizeof(Header) + count_bytes(shape) + sizeof(XXH64_hash_t);
}

bool plausible(float uses) { return std::isfinite(uses) && uses >= 0.0f; }

/// Why the file is not this model's profile, or nothing.
std::string objection(std::span<const std::byte> bytes, const ProfileShape& shape) {
    Header header;
    if (bytes.size() < sizeof header) return "is cut";
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.magic != kMagic) return "is no routing profile";
    if (header.version != kVersion) {
        return fmt::format("has format {}, and this program reads {}", header.version, kVersion);
    }
    if (header.model_hash != shape.model_hash) return "is of another model";
    if (header.layers != shape.layers || header.experts != shape.experts) {
        return fmt::format("counts {} layers of {} experts, and the model has {} of {}", header.layers,
                           header.experts, shape.layers, shape.experts);
    }
    if (bytes.size() < file_bytes(shape)) return "is cut";
    if (bytes.size() > file_bytes(shape)) return "is longer than it says";
    const std::size_t hashed = bytes.size() - sizeof(XXH64_hash_t);
    XXH64_hash_t checksum = 0;
    std::memcpy(&checksum, bytes.data() + hashed, sizeof checksum);
    if (checksum != XXH64(bytes.data(), hashed, 0)) return "is damaged: its checksum differs";
    return "";
}

ProfileLoad ignored(const std::string& name, const std::string& why) {
    return {.profile = std::nullopt, .ignored = fmt::format("the routing profile {} {}; ignored", name, why)};
}

std::vector<std::byte> encode(const RoutingProfile& profile) {
    const ProfileShape& shape = profile.shape();
    const Header header{.model_hash = shape.model_hash, .layers = shape.layers, .experts = shape.experts};
    std::vector<std::byte> bytes(file_bytes(shape));
    std::memcpy(bytes.data(), &header, sizeof header);
    std::byte* end = bytes.data() + sizeof header;
    for (std::int32_t layer = 0; layer < shape.layers; ++layer) {
        const std::vector<float> uses = profile.uses(layer);
        end = std::copy_n(std::as_bytes(std::span(uses)).begin(), uses.size() * sizeof(float), end);
    }
    const XXH64_hash_t checksum = XXH64(bytes.data(), static_cast<std::size_t>(end - bytes.data()), 0);
    std::memcpy(end, &checksum, sizeof checksum);
    return bytes;
}

/// `uses(index)` gives those of the expert with this place in [layers][experts].
template <typename Uses>
ProfileLoad filled(const ProfileShape& shape, Uses uses) {
    RoutingProfile profile(shape);
    std::size_t index = 0;
    for (std::int32_t layer = 0; layer < shape.layers; ++layer) {
        for (std::int32_t expert = 0; expert < shape.experts; ++expert) {
            profile.set({layer, expert}, uses(index++));
        }
    }
    return {.profile = std::move(profile), .ignored = ""};
}

}  // namespace

void RoutingProfile::save(const std::string& path) const {
    AtomicFile file(path);
    file.write(encode(*this));
    file.commit();
}

ProfileLoad load_profile(const std::string& path, const ProfileShape& shape) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return {};
    if (!std::filesystem::is_regular_file(path, error)) return ignored(path, "is not a regular file");
    std::ifstream file(path, std::ios::binary);
    std::vector<std::byte> bytes(file_bytes(shape) + 1);  // one more shows that there is more
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file.is_open() || file.bad()) return ignored(path, "cannot be read");
    bytes.resize(static_cast<std::size_t>(file.gcount()));
    return parse_profile(bytes, path, shape);
}

ProfileLoad parse_profile(std::span<const std::byte> bytes, const std::string& name,
                          const ProfileShape& shape) {
    if (const std::string why = objection(bytes, shape); !why.empty()) return ignored(name, why);
    std::vector<float> uses(count_bytes(shape) / sizeof(float));
    std::memcpy(uses.data(), bytes.data() + sizeof(Header), count_bytes(shape));
    for (const float value : uses) {
        if (!plausible(value)) return ignored(name, fmt::format("counts {} uses of an expert", value));
    }
    return filled(shape, [&](std::size_t index) { return static_cast<double>(uses[index]); });
}

ProfileLoad profile_from_usage(std::span<const std::uint32_t> usage, const ProfileShape& shape) {
    const std::string name = "in the model's moe_cache.expert_usage";
    const auto experts = static_cast<std::size_t>(shape.experts);
    if (usage.size() != static_cast<std::size_t>(shape.layers) * experts) {
        return ignored(name, fmt::format("has {} numbers, and the model has {} layers of {} experts",
                                         usage.size(), shape.layers, shape.experts));
    }
    if (std::all_of(usage.begin(), usage.end(), [](std::uint32_t uses) { return uses == 0; })) {
        return ignored(name, "counts no use at all");
    }
    return filled(shape, [&](std::size_t index) {
        const auto layer = usage.subspan(index / experts * experts, experts);
        const double most = std::max(1u, *std::max_element(layer.begin(), layer.end()));
        return kUsageScale * usage[index] / most;
    });
}

}  // namespace coterie::expert_cache
