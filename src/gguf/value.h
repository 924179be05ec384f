#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace coterie::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF values are read in place");

/// The types of metadata values; the numbers are the ids in the file.
enum class ValueType : std::uint32_t {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    String = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
};

/// Nothing for an id that GGUF does not define.
std::optional<ValueType> value_type(std::uint32_t id);

std::string_view name(ValueType type);  ///< "u32", "string"

/// Bytes of one element; 0 for strings and arrays, whose size varies.
std::uint64_t element_bytes(ValueType type);

/// Whether an element can be read as an integer: every integer type, and bool as 0 or 1.
bool is_integer(ValueType type);
/// Whether an element can be read as a number: the above, f32 and f64.
bool is_number(ValueType type);

/// Reads a trivial value from bytes of any alignment.
template <typename T>
T load(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

/// Element `index` of packed elements of `type`, widened to T (int64_t or double).
template <typename T>
T load_element(ValueType type, const std::byte* elements, std::size_t index) {
    const std::byte* at = elements + index * element_bytes(type);
    switch (type) {
        case ValueType::U8:
        case ValueType::Bool:
            return static_cast<T>(load<std::uint8_t>(at));
        case ValueType::I8:
            return static_cast<T>(load<std::int8_t>(at));
        case ValueType::U16:
            return static_cast<T>(load<std::uint16_t>(at));
        case ValueType::I16:
            return static_cast<T>(load<std::int16_t>(at));
        case ValueType::U32:
            return static_cast<T>(load<std::uint32_t>(at));
        case ValueType::I32:
            return static_cast<T>(load<std::int32_t>(at));
        case ValueType::U64:
            return static_cast<T>(load<std::uint64_t>(at));
        case ValueType::I64:
            return static_cast<T>(load<std::int64_t>(at));
        case ValueType::F32:
            return static_cast<T>(load<float>(at));
        case ValueType::F64:
            return static_cast<T>(load<double>(at));
        case ValueType::String:
        case ValueType::Array:
            break;
    }
    COTERIE_CHECK(!"the type of a number");
    return {};
}

/// The numbers of an array, widened to T (int64_t or double) when they are read; a view of the file's bytes.
template <typename T>
class NumberArray {
  public:
    class Iterator {
      public:
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        Iterator(const NumberArray* array, std::size_t index) : array_(array), index_(index) {}
        T operator*() const { return (*array_)[index_]; }
        Iterator& operator++() { return ++index_, *this; }
        Iterator operator++(int) { return {array_, index_++}; }
        bool operator==(const Iterator& other) const { return index_ == other.index_; }

      private:
        const NumberArray* array_;
        std::size_t index_;
    };

    NumberArray(ValueType type, const std::byte* elements, std::size_t count)
        : type_(type), elements_(elements), count_(count) {}

    std::size_t size() const { return count_; }
    T operator[](std::size_t index) const { return load_element<T>(type_, elements_, index); }
    Iterator begin() const { return {this, 0}; }
    Iterator end() const { return {this, count_}; }
    std::vector<T> to_vector() const { return copy_first(count_); }

    std::vector<T> copy_first(std::size_t count) const {
        std::vector<T> result(count);
        for (std::size_t i = 0; i < count; ++i) result[i] = (*this)[i];
        return result;
    }

  private:
    ValueType type_;
    const std::byte* elements_;
    std::size_t count_;
};

/// The strings of an array in their order; a view of the file's bytes. Each string follows its 64-bit length,
/// so there is no access by index: collect with `to_vector` (16 bytes a string) where that is needed.
class StringArray {
  public:
    class Iterator {
      public:
        using value_type = std::string_view;
        using difference_type = std::ptrdiff_t;
        Iterator(const std::byte* at, std::size_t left) : at_(at), left_(left) {}
        std::string_view operator*() const { return {reinterpret_cast<const char*>(at_ + 8), length()}; }
        Iterator& operator++() { return at_ += 8 + length(), --left_, *this; }
        Iterator operator++(int) {
            const Iterator before = *this;
            ++*this;
            return before;
        }
        bool operator==(const Iterator& other) const { return left_ == other.left_; }

      private:
        std::size_t length() const { return load<std::uint64_t>(at_); }
        const std::byte* at_;
        std::size_t left_;
    };

    StringArray(const std::byte* elements, std::size_t count) : elements_(elements), count_(count) {}

    std::size_t size() const { return count_; }
    Iterator begin() const { return {elements_, count_}; }
    Iterator end() const { return {nullptr, 0}; }

    std::vector<std::string_view> to_vector() const {
        std::vector<std::string_view> result;
        result.reserve(count_);
        for (const std::string_view text : *this) result.push_back(text);
        return result;
    }

  private:
    const std::byte* elements_;
    std::size_t count_;
};

/// One metadata value where it lies in the file. A scalar is stored like an array of one.
struct Value {
    ValueType type;  ///< of the elements; never Array
    bool is_array;
    std::size_t count;                 ///< 1 for a scalar
    std::span<const std::byte> bytes;  ///< the packed elements; each string with its length in front
    std::uint64_t file_offset;         ///< of `bytes`

    StringArray strings() const { return {bytes.data(), count}; }  ///< Requires: String
    NumberArray<std::int64_t> integers() const {
        return {type, bytes.data(), count};
    }                                                                            ///< Requires: is_integer
    NumberArray<double> numbers() const { return {type, bytes.data(), count}; }  ///< Requires: is_number
};

}  // namespace coterie::gguf
