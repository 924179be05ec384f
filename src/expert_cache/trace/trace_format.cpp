#include "expert_cache/trace/trace_format.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <xxhash.h>

#include "base/error.h"

namespace coterie::expert_cache::trace_format {
namespace {

static_assert(std::endian::native == std::endian::little);

template <typename T>
std::byte* put(std::byte* out, T value) {
    std::memcpy(out, &value, sizeof value);
    return out + sizeof value;
}

template <typename Id>
std::byte* put_ids(std::byte* out, std::span<const std::int32_t> experts) {
    for (const std::int32_t expert : experts) out = put(out, static_cast<Id>(expert));  // -1: all ones
    return out;
}

}  // namespace

const char* objection(const TraceHeader& header) {
    if (header.layers.empty() || header.layers.size() > static_cast<std::size_t>(kMaxLayers)) {
        return "a trace has 1 to 1024 layers with experts";
    }
    if (header.experts < 1 || header.experts > kMaxExperts) return "a layer has 1 to 4096 experts";
    if (header.used < 1 || header.used > std::min(header.experts, kMaxUsed)) {
        return "a token uses 1 to 256 experts and no more than a layer has";
    }
    std::int32_t before = -1;
    for (const TraceLayer& layer : header.layers) {
        if (layer.layer <= before) return "layers are not in order";
        if (layer.expert_bytes < 1 || layer.expert_bytes > kMaxExpertBytes) {
            return "an expert has 1 byte to 1 TiB";
        }
        before = layer.layer;
    }
    return nullptr;
}

std::size_t id_bytes(const TraceHeader& header) { return header.experts <= 255 ? 1 : 2; }

std::size_t record_bytes(const TraceHeader& header) {
    return 2 * sizeof(std::uint32_t) +
           header.layers.size() * static_cast<std::size_t>(header.used) * id_bytes(header);
}

std::uint32_t checksum(std::span<const std::byte> bytes, std::uint64_t seed) {
    return static_cast<std::uint32_t>(XXH64(bytes.data(), bytes.size(), seed));
}

void encode_record(const TraceHeader& header, std::uint64_t record, std::uint32_t step,
                   std::span<const std::int32_t> experts, std::byte* out) {
    COTERIE_CHECK(experts.size() == header.layers.size() * static_cast<std::size_t>(header.used));
    std::byte* end = put(out, step);
    end = id_bytes(header) == 1 ? put_ids<std::uint8_t>(end, experts) : put_ids<std::uint16_t>(end, experts);
    put(end, checksum({out, end}, record));
}

std::vector<std::byte> encode_header(const TraceHeader& header) {
    const std::size_t hashed = kFixedHeaderBytes + header.layers.size() * kLayerBytes;
    std::vector<std::byte> bytes(hashed + sizeof(XXH64_hash_t));
    std::byte* end = put(bytes.data(), kMagic);
    end = put(end, kVersion);
    end = put(end, static_cast<std::uint32_t>(header.layers.size()));
    end = put(end, header.experts);
    end = put(end, header.used);
    end = put(end, header.model_hash);
    for (const TraceLayer& layer : header.layers) {
        end = put(end, layer.layer);
        end = put(end, std::uint32_t{0});
        end = put(end, layer.expert_bytes);
    }
    put(end, XXH64(bytes.data(), hashed, 0));
    return bytes;
}

std::vector<std::byte> encode_trailer(std::uint64_t records) {
    std::vector<std::byte> bytes(kTrailerBytes);
    std::byte* end = put(bytes.data(), kEnd);
    end = put(end, records);
    put(end, checksum({bytes.data(), end}, 0));
    return bytes;
}

}  // namespace coterie::expert_cache::trace_format
