#include "gguf/content_hash.h"

#include <algorithm>
#include <xxhash.h>

namespace coterie::gguf {
namespace {

constexpr std::size_t kHashedBytes = 4096;

std::uint64_t hash(std::span<const std::byte> bytes, std::uint64_t seed) {
    return XXH64(bytes.data(), bytes.size(), seed);
}

std::uint64_t hash(const Tensor& tensor, std::uint64_t seed) {
    seed = hash(std::as_bytes(std::span(tensor.name)), seed);
    seed = hash(std::as_bytes(std::span(&tensor.type, 1)), seed);
    seed = hash(std::as_bytes(std::span(tensor.dims)), seed);
    return hash(tensor.bytes.first(std::min(tensor.bytes.size(), kHashedBytes)), seed);
}

}  // namespace

std::uint64_t content_hash(const Archive& archive) {
    std::uint64_t result = archive.tensors().size();
    for (const Tensor& tensor : archive.tensors()) result = hash(tensor, result);
    for (const MetadataOverride& override : archive.overrides()) {
        result = hash(std::as_bytes(std::span(override.key)), result);
        result = hash(override.bytes, result);
    }
    return result;
}

}  // namespace coterie::gguf
