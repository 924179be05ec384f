#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/name_index.h"
#include "gguf/value.h"

namespace coterie::gguf {

/// A metadata key and where its value lies in the file.
struct MetadataEntry {
    std::string_view name;
    Value value;
};

/// The key/value pairs of a file, frozen. It borrows the file's bytes.
///
/// Converters disagree on integer types, so the getters are liberal: an integer may be stored as any integer
/// type or as a bool, a bool as an integer 0 or 1, a number as any of these or a float. A getter without a
/// fallback refuses a missing key; both forms refuse a key of the wrong kind, naming file and key.
class Metadata {
  public:
    /// Requires: no two entries of one name.
    Metadata(std::string file, std::vector<MetadataEntry> entries);

    const std::string& file() const { return file_; }
    std::span<const MetadataEntry> entries() const { return entries_; }  ///< in the file's order

    /// Null where the key is missing.
    const Value* find(std::string_view key) const;
    bool has(std::string_view key) const { return find(key) != nullptr; }

    std::int64_t integer(std::string_view key) const;
    std::int64_t integer(std::string_view key, std::int64_t fallback) const;
    double number(std::string_view key) const;  ///< finite
    double number(std::string_view key, double fallback) const;
    bool boolean(std::string_view key) const;
    bool boolean(std::string_view key, bool fallback) const;
    std::string_view string(std::string_view key) const;
    std::string_view string(std::string_view key, std::string_view fallback) const;

    /// Arrays; a scalar counts as an array of one.
    NumberArray<std::int64_t> integers(std::string_view key) const;
    NumberArray<double> numbers(std::string_view key) const;
    StringArray strings(std::string_view key) const;

    /// One value per layer: a scalar holds for all layers, an array must have at least `layers` values.
    std::vector<std::int64_t> integers_per_layer(std::string_view key, std::size_t layers) const;
    std::vector<std::int64_t> integers_per_layer(std::string_view key, std::size_t layers,
                                                 std::int64_t fallback) const;
    std::vector<double> numbers_per_layer(std::string_view key, std::size_t layers) const;
    std::vector<double> numbers_per_layer(std::string_view key, std::size_t layers, double fallback) const;

  private:
    const Value& required(std::string_view key) const;
    const Value& scalar(std::string_view key) const;
    [[noreturn]] void refuse_kind(std::string_view key, const Value& value, std::string_view wanted) const;
    void check_integers(std::string_view key, const Value& value) const;
    void check_length(std::string_view key, const Value& value, std::size_t layers) const;

    std::string file_;
    std::vector<MetadataEntry> entries_;
    NameIndex index_;
};

}  // namespace coterie::gguf
