#include "gguf/metadata.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "gguf/printable.h"

namespace coterie::gguf {

Metadata::Metadata(std::string file, std::vector<MetadataEntry> entries)
    : file_(std::move(file)), entries_(std::move(entries)), index_(entries_) {
    COTERIE_CHECK(!index_.duplicate());
}

const Value* Metadata::find(std::string_view key) const {
    const auto at = index_.find(key);
    return at ? &entries_[*at].value : nullptr;
}

std::int64_t Metadata::integer(std::string_view key) const {
    const Value& value = scalar(key);
    check_integers(key, value);
    return value.integers()[0];
}

double Metadata::number(std::string_view key) const {
    const Value& value = scalar(key);
    if (!is_number(value.type)) refuse_kind(key, value, "a number");
    const double result = value.numbers()[0];
    if (!std::isfinite(result)) {
        fail(ErrorCode::InvalidFile,
             "{}: key '{}' is {}, not a finite number; the file is damaged or badly converted", file_,
             printable(key), result);
    }
    return result;
}

bool Metadata::boolean(std::string_view key) const {
    const std::int64_t value = integer(key);
    if (value != 0 && value != 1) {
        fail(ErrorCode::InvalidFile,
             "{}: key '{}' is {} where true or false is meant; the file is badly converted", file_,
             printable(key), value);
    }
    return value == 1;
}

std::string_view Metadata::string(std::string_view key) const {
    const Value& value = scalar(key);
    if (value.type != ValueType::String) refuse_kind(key, value, "a string");
    return *value.strings().begin();
}

NumberArray<std::int64_t> Metadata::integers(std::string_view key) const {
    const Value& value = required(key);
    check_integers(key, value);
    return value.integers();
}

NumberArray<double> Metadata::numbers(std::string_view key) const {
    const Value& value = required(key);
    if (!is_number(value.type)) refuse_kind(key, value, "an array of numbers");
    return value.numbers();
}

StringArray Metadata::strings(std::string_view key) const {
    const Value& value = required(key);
    if (value.type != ValueType::String) refuse_kind(key, value, "an array of strings");
    return value.strings();
}

std::vector<std::int64_t> Metadata::integers_per_layer(std::string_view key, std::size_t layers) const {
    const auto values = integers(key);
    if (!find(key)->is_array) return std::vector<std::int64_t>(layers, values[0]);
    check_length(key, *find(key), layers);
    return values.copy_first(layers);
}

std::vector<double> Metadata::numbers_per_layer(std::string_view key, std::size_t layers) const {
    const auto values = numbers(key);
    if (!find(key)->is_array) return std::vector<double>(layers, number(key));
    check_length(key, *find(key), layers);
    return values.copy_first(layers);
}

std::int64_t Metadata::integer(std::string_view key, std::int64_t fallback) const {
    return has(key) ? integer(key) : fallback;
}

double Metadata::number(std::string_view key, double fallback) const {
    return has(key) ? number(key) : fallback;
}

bool Metadata::boolean(std::string_view key, bool fallback) const {
    return has(key) ? boolean(key) : fallback;
}

std::string_view Metadata::string(std::string_view key, std::string_view fallback) const {
    return has(key) ? string(key) : fallback;
}

std::vector<std::int64_t> Metadata::integers_per_layer(std::string_view key, std::size_t layers,
                                                       std::int64_t fallback) const {
    return has(key) ? integers_per_layer(key, layers) : std::vector<std::int64_t>(layers, fallback);
}

std::vector<double> Metadata::numbers_per_layer(std::string_view key, std::size_t layers,
                                                double fallback) const {
    return has(key) ? numbers_per_layer(key, layers) : std::vector<double>(layers, fallback);
}

const Value& Metadata::required(std::string_view key) const {
    const Value* value = find(key);
    if (!value) {
        fail(ErrorCode::InvalidFile,
             "{}: key '{}' is missing; convert the model again with a current converter, or get another copy",
             file_, printable(key));
    }
    return *value;
}

const Value& Metadata::scalar(std::string_view key) const {
    const Value& value = required(key);
    if (value.is_array) refuse_kind(key, value, "a single value");
    return value;
}

void Metadata::refuse_kind(std::string_view key, const Value& value, std::string_view wanted) const {
    fail(ErrorCode::InvalidFile, "{}: key '{}' is {}{} where {} is meant; the file is badly converted", file_,
         printable(key), value.is_array ? "an array of " : "of type ", name(value.type), wanted);
}

void Metadata::check_integers(std::string_view key, const Value& value) const {
    if (!is_integer(value.type)) refuse_kind(key, value, "an integer");
    if (value.type != ValueType::U64) return;
    const auto values = value.integers();
    const auto wrapped = std::find_if(values.begin(), values.end(), [](std::int64_t v) { return v < 0; });
    if (wrapped == values.end()) return;
    fail(ErrorCode::InvalidFile, "{}: key '{}' holds {}, more than any count can be; the file is damaged",
         file_, printable(key), static_cast<std::uint64_t>(*wrapped));
}

void Metadata::check_length(std::string_view key, const Value& value, std::size_t layers) const {
    if (value.count >= layers) return;
    fail(ErrorCode::InvalidFile, "{}: key '{}' has {} values for {} layers; the file is badly converted",
         file_, printable(key), value.count, layers);
}

}  // namespace coterie::gguf
