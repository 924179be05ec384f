#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// A routing trace: which experts every token used in every layer. Numbers are little endian.
///
///     header
///       0      kMagic (8)
///       8      format version (4)
///       12     layers with experts L (4), experts per layer (4), experts used per token and layer U (4)
///       24     hash of the model (8)
///       32     L times: layer number (4), zero (4), bytes of one expert (8)
///              XXH64 of everything before (8)
///     a record per token
///       0      step (4): tokens computed together share it
///       4      experts [L][U], one byte each where a layer has at most 255, else two; all ones: none
///              low half of XXH64 of the record, seeded with its number (4)
///     trailer
///       0      kEnd (4), records (8), low half of XXH64 of both (4)
///
/// Only a finished file has a trailer, and records are all of one size, so a file cut anywhere still gives
/// all tokens before the cut, and never passes for a whole one.
namespace coterie::expert_cache {

struct TraceLayer {
    std::int32_t layer = 0;          ///< its number in the model
    std::uint64_t expert_bytes = 0;  ///< of one expert
};

struct TraceHeader {
    std::uint64_t model_hash = 0;
    std::int32_t experts = 0;
    std::int32_t used = 0;           ///< at most, per token and layer
    std::vector<TraceLayer> layers;  ///< by ascending number
};

namespace trace_format {

inline constexpr std::uint64_t kMagic = 0x31'45'43'41'52'54'43'7F;  // "\x7F" "CTRACE1"
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kEnd = 0xFFFFFFFF;
inline constexpr std::size_t kFixedHeaderBytes = 32;
inline constexpr std::size_t kLayerBytes = 16;
inline constexpr std::size_t kTrailerBytes = 16;

/// What a header must keep to: several times what any model has, and little enough that a false one cannot
/// ask for much memory.
inline constexpr std::int32_t kMaxLayers = 1024;
inline constexpr std::int32_t kMaxExperts = 4096;
inline constexpr std::int32_t kMaxUsed = 256;
inline constexpr std::uint64_t kMaxExpertBytes = std::uint64_t{1} << 40;

/// Why a trace cannot have this header, or null.
const char* objection(const TraceHeader& header);

std::size_t id_bytes(const TraceHeader& header);
std::size_t record_bytes(const TraceHeader& header);

/// Low half of XXH64.
std::uint32_t checksum(std::span<const std::byte> bytes, std::uint64_t seed);

/// `record` is the number of the record, `experts` [layers][used] with -1 for none. Requires: room for one
/// record.
void encode_record(const TraceHeader& header, std::uint64_t record, std::uint32_t step,
                   std::span<const std::int32_t> experts, std::byte* out);
std::vector<std::byte> encode_header(const TraceHeader& header);
std::vector<std::byte> encode_trailer(std::uint64_t records);

}  // namespace trace_format
}  // namespace coterie::expert_cache
