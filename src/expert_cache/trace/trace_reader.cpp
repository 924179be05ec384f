#include "expert_cache/trace/trace_reader.h"

#include <cstring>
#include <fmt/format.h>
#include <utility>
#include <vector>
#include <xxhash.h>

#include "base/error.h"

namespace coterie::expert_cache {
namespace {

using namespace trace_format;

template <typename T>
T load(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

template <typename Id>
void load_ids(const std::byte* at, std::span<std::int32_t> experts) {
    for (std::int32_t& expert : experts) {
        const Id id = load<Id>(at);
        expert = id == static_cast<Id>(-1) ? -1 : static_cast<std::int32_t>(id);
        at += sizeof(Id);
    }
}

}  // namespace

TraceReader::TraceReader(std::span<const std::byte> bytes, std::string name)
    : bytes_(bytes), name_(std::move(name)) {
    first_record_ = read_header();
    record_bytes_ = record_bytes(header_);
    read_records();
}

std::uint32_t TraceReader::step(std::int64_t token) const { return load<std::uint32_t>(record(token)); }

void TraceReader::read(std::int64_t token, std::span<std::int32_t> experts) const {
    const std::byte* ids = record(token) + sizeof(std::uint32_t);
    id_bytes(header_) == 1 ? load_ids<std::uint8_t>(ids, experts) : load_ids<std::uint16_t>(ids, experts);
}

const std::byte* TraceReader::record(std::int64_t token) const {
    return bytes_.data() + first_record_ + static_cast<std::size_t>(token) * record_bytes_;
}

std::size_t TraceReader::read_header() {
    if (bytes_.size() < sizeof kMagic || load<std::uint64_t>(bytes_.data()) != kMagic) {
        fail_at(0, "this is no routing trace; 'coterie run --trace FILE' records one");
    }
    if (bytes_.size() < kFixedHeaderBytes) fail_at(bytes_.size(), "the trace is cut in its header");
    const std::byte* at = bytes_.data() + sizeof kMagic;
    if (const auto version = load<std::uint32_t>(at); version != kVersion) {
        fail_at(8, fmt::format("format {}, and this program reads {}", version, kVersion));
    }
    const auto layers = load<std::uint32_t>(at + 4);
    if (layers > static_cast<std::uint32_t>(kMaxLayers)) fail_at(12, fmt::format("{} layers", layers));
    const std::size_t hashed = kFixedHeaderBytes + layers * kLayerBytes;
    const std::size_t end = hashed + sizeof(XXH64_hash_t);
    if (bytes_.size() < end) fail_at(bytes_.size(), "the trace is cut in its header");
    if (load<std::uint64_t>(bytes_.data() + hashed) != XXH64(bytes_.data(), hashed, 0)) {
        fail_at(hashed, "the header is damaged: its checksum differs");
    }
    header_.experts = load<std::int32_t>(at + 8);
    header_.used = load<std::int32_t>(at + 12);
    header_.model_hash = load<std::uint64_t>(at + 16);
    for (std::size_t layer = kFixedHeaderBytes; layer < hashed; layer += kLayerBytes) {
        header_.layers.push_back({.layer = load<std::int32_t>(bytes_.data() + layer),
                                  .expert_bytes = load<std::uint64_t>(bytes_.data() + layer + 8)});
    }
    if (const char* why = objection(header_)) fail_at(0, std::string("the header cannot be: ") + why);
    return end;
}

void TraceReader::read_records() {
    std::vector<std::int32_t> experts(header_.layers.size() * static_cast<std::size_t>(header_.used));
    std::vector<std::int64_t> last_seen(static_cast<std::size_t>(header_.experts), -1);
    std::size_t offset = first_record_;
    while (true) {
        const std::size_t left = bytes_.size() - offset;
        if (left >= sizeof kEnd && load<std::uint32_t>(bytes_.data() + offset) == kEnd) {
            return read_trailer(offset);
        }
        if (left < record_bytes_) return end_at_cut();
        check_record(offset);
        read(tokens_, experts);
        check_experts(offset, experts, last_seen);
        ++tokens_;
        offset += record_bytes_;
    }
}

void TraceReader::check_record(std::size_t offset) const {
    const std::size_t hashed = record_bytes_ - sizeof(std::uint32_t);
    const auto stored = load<std::uint32_t>(bytes_.data() + offset + hashed);
    if (stored != checksum(bytes_.subspan(offset, hashed), static_cast<std::uint64_t>(tokens_))) {
        fail_at(offset, fmt::format("token {} is damaged: its checksum differs", tokens_));
    }
    const std::int64_t before = tokens_ == 0 ? 0 : std::int64_t{step(tokens_ - 1)};
    const std::int64_t now = step(tokens_);
    const std::int64_t highest = tokens_ == 0 ? 0 : before + 1;
    if (now < before || now > highest) {
        fail_at(offset, fmt::format("token {} is of step {} behind step {}", tokens_, now, before));
    }
}

/// `last_seen` [experts] holds the last row (a layer of a token) that used each.
void TraceReader::check_experts(std::size_t offset, std::span<const std::int32_t> experts,
                                std::span<std::int64_t> last_seen) const {
    const auto used = static_cast<std::size_t>(header_.used);
    const std::int64_t first_row = tokens_ * static_cast<std::int64_t>(header_.layers.size());
    for (std::size_t i = 0; i < experts.size(); ++i) {
        const std::int32_t expert = experts[i];
        if (expert < 0) continue;
        const std::int64_t row = first_row + static_cast<std::int64_t>(i / used);
        const bool behind_none = i % used > 0 && experts[i - 1] < 0;
        if (expert < header_.experts && !behind_none &&
            std::exchange(last_seen[static_cast<std::size_t>(expert)], row) != row) {
            continue;
        }
        fail_at(offset, fmt::format("token {} cannot use expert {} of layer {} here", tokens_, expert,
                                    header_.layers[i / used].layer));
    }
}

void TraceReader::read_trailer(std::size_t offset) {
    const std::size_t left = bytes_.size() - offset;
    if (left < kTrailerBytes) return end_at_cut();
    const std::size_t hashed = kTrailerBytes - sizeof(std::uint32_t);
    if (load<std::uint32_t>(bytes_.data() + offset + hashed) != checksum(bytes_.subspan(offset, hashed), 0)) {
        fail_at(offset, "the end is damaged: its checksum differs");
    }
    const auto records = load<std::uint64_t>(bytes_.data() + offset + sizeof kEnd);
    if (records != static_cast<std::uint64_t>(tokens_)) {
        fail_at(offset, fmt::format("the end says {} tokens, and there are {}", records, tokens_));
    }
    if (left > kTrailerBytes) {
        fail_at(offset + kTrailerBytes, fmt::format("{} bytes behind the end", left - kTrailerBytes));
    }
}

void TraceReader::end_at_cut() {
    warning_ = fmt::format("{}: the recording was cut; its first {} tokens are used", name_, tokens_);
}

void TraceReader::fail_at(std::size_t offset, const std::string& what) const {
    fail(ErrorCode::InvalidFile, "{}: byte {}: {}", name_, offset, what);
}

}  // namespace coterie::expert_cache
