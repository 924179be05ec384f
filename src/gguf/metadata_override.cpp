#include "gguf/metadata_override.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "gguf/printable.h"

namespace coterie::gguf {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& reason) {
    fail(ErrorCode::InvalidArgument,
         "--override-kv {}: {}; write KEY=TYPE:VALUE, where TYPE is int, float, bool or str", printable(text),
         reason);
}

template <typename T>
std::vector<std::byte> bytes_of(T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    return {bytes.begin(), bytes.end()};
}

template <typename T>
T number(std::string_view text, std::string_view value, const char* kind) {
    T result{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || end != value.data() + value.size() || value.empty())
        refuse(text, fmt::format("'{}' is no {}", printable(value), kind));
    return result;
}

std::vector<std::byte> string_bytes(std::string_view value) {
    std::vector<std::byte> bytes = bytes_of<std::uint64_t>(value.size());
    const auto characters = std::as_bytes(std::span(value));
    bytes.insert(bytes.end(), characters.begin(), characters.end());
    return bytes;
}

Value value_of(const MetadataOverride& override) {
    return {.type = override.type, .is_array = false, .count = 1, .bytes = override.bytes, .file_offset = 0};
}

/// Whether a value of the type can be read where the file has the other.
bool may_stand_for(ValueType type, ValueType in_file) {
    if (type == ValueType::String || in_file == ValueType::String) return type == in_file;
    return is_integer(type) || !is_integer(in_file);
}

void check_kind(const Metadata& metadata, const MetadataOverride& override) {
    const Value* value = metadata.find(override.key);
    if (value == nullptr || (!value->is_array && may_stand_for(override.type, value->type))) return;
    fail(ErrorCode::InvalidArgument,
         "--override-kv {}: {} has {}{} under this key; give a value of that kind", printable(override.key),
         metadata.file(), value->is_array ? "an array of " : "a value of type ", name(value->type));
}

}  // namespace

MetadataOverride parse_metadata_override(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) refuse(text, "there is no KEY=");
    const std::string key(text.substr(0, equals));
    const std::string_view typed = text.substr(equals + 1);
    const std::size_t colon = typed.find(':');
    if (colon == std::string_view::npos) refuse(text, "there is no TYPE:");
    const std::string_view type = typed.substr(0, colon);
    const std::string_view value = typed.substr(colon + 1);
    if (type == "int")
        return {key, ValueType::I64, bytes_of(number<std::int64_t>(text, value, "whole number of 64 bits"))};
    if (type == "float") {
        const auto number_given = number<double>(text, value, "number");
        if (!std::isfinite(number_given)) refuse(text, "the number is not finite");
        return {key, ValueType::F64, bytes_of(number_given)};
    }
    if (type == "bool") {
        if (value != "true" && value != "false") refuse(text, "a bool is true or false");
        return {key, ValueType::Bool, bytes_of<std::uint8_t>(value == "true" ? 1 : 0)};
    }
    if (type == "str") return {key, ValueType::String, string_bytes(value)};
    refuse(text, fmt::format("there is no type '{}'", printable(type)));
}

Metadata override_metadata(const Metadata& metadata, std::span<const MetadataOverride> overrides) {
    std::vector<MetadataEntry> entries(metadata.entries().begin(), metadata.entries().end());
    for (const MetadataOverride& override : overrides) {
        check_kind(metadata, override);
        const auto known = std::find_if(entries.begin(), entries.end(), [&](const MetadataEntry& entry) {
            return entry.name == override.key;
        });
        if (known == entries.end()) {
            entries.push_back({override.key, value_of(override)});
        } else {
            known->value = value_of(override);
        }
    }
    return Metadata(metadata.file(), std::move(entries));
}

}  // namespace coterie::gguf
