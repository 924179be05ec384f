#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "gguf/value.h"
#include "quant/data_type.h"

namespace coterie::gguf {

/// The C++ types that are stored as they are.
template <typename T>
concept StoredScalar = std::same_as<T, std::uint8_t> || std::same_as<T, std::int8_t> ||
    std::same_as<T, std::uint16_t> || std::same_as<T, std::int16_t> || std::same_as<T, std::uint32_t> ||
    std::same_as<T, std::int32_t> || std::same_as<T, float> || std::same_as<T, bool> ||
    std::same_as<T, std::uint64_t> || std::same_as<T, std::int64_t> || std::same_as<T, double>;

template <StoredScalar T>
constexpr ValueType stored_type() {
    if constexpr (std::same_as<T, float>) return ValueType::F32;
    if constexpr (std::same_as<T, double>) return ValueType::F64;
    if constexpr (std::same_as<T, bool>) return ValueType::Bool;
    if constexpr (std::same_as<T, std::uint8_t>) return ValueType::U8;
    if constexpr (std::same_as<T, std::int8_t>) return ValueType::I8;
    if constexpr (std::same_as<T, std::uint16_t>) return ValueType::U16;
    if constexpr (std::same_as<T, std::int16_t>) return ValueType::I16;
    if constexpr (std::same_as<T, std::uint32_t>) return ValueType::U32;
    if constexpr (std::same_as<T, std::int32_t>) return ValueType::I32;
    if constexpr (std::same_as<T, std::uint64_t>) return ValueType::U64;
    if constexpr (std::same_as<T, std::int64_t>) return ValueType::I64;
}

/// A tensor to be written: its shape as in `Tensor::dims`, 1 to 4 dimensions.
struct TensorSpec {
    std::string name;
    DataType type;
    std::vector<std::int64_t> dims;
};

/// Everything of a GGUF file (version 3) but its tensor data. Keys and tensors keep the order in which they
/// are added; an empty or repeated name and an impossible shape throw InvalidArgument.
class Header {
  public:
    static constexpr std::uint32_t kDefaultAlignment = 32;

    /// `alignment`: a power of two.
    explicit Header(std::uint32_t alignment = kDefaultAlignment);

    template <StoredScalar T>
    void set(std::string_view key, T value) {
        add_value(key, stored_type<T>(), std::as_bytes(std::span(&value, 1)));
    }
    void set(std::string_view key, std::string_view value);

    template <StoredScalar T>
    void set_array(std::string_view key, std::span<const T> values) {
        add_array(key, stored_type<T>(), values.size(), std::as_bytes(values));
    }
    void set_array(std::string_view key, std::span<const std::string> values);

    void add_tensor(TensorSpec tensor);

    std::span<const TensorSpec> tensors() const { return tensors_; }
    std::uint32_t alignment() const { return alignment_; }

    std::uint64_t tensor_bytes(std::size_t tensor) const { return tensor_bytes_[tensor]; }
    std::uint64_t file_bytes() const;  ///< of the whole file

    /// The file's bytes up to the data section, padding included.
    std::vector<std::byte> serialise() const;

  private:
    void add_key(std::string_view key, ValueType type);
    void add_value(std::string_view key, ValueType type, std::span<const std::byte> bytes);
    void add_array(std::string_view key, ValueType type, std::uint64_t count,
                   std::span<const std::byte> bytes);

    std::uint32_t alignment_;
    std::vector<std::byte> metadata_;  ///< the key/value pairs as in the file
    std::set<std::string, std::less<>> keys_;
    std::vector<TensorSpec> tensors_;
    std::vector<std::uint64_t> tensor_bytes_;
    std::set<std::string, std::less<>> tensor_names_;
};

/// Takes the data of one tensor, in any number of pieces.
class TensorOutput {
  public:
    using Sink = FunctionRef<void(std::span<const std::byte>)>;
    TensorOutput(Sink sink, std::uint64_t bytes) : sink_(sink), left_(bytes) {}

    void append(std::span<const std::byte> bytes);
    template <typename T>
    void append(std::span<const T> values) {
        append(std::as_bytes(values));
    }
    std::uint64_t left() const { return left_; }

  private:
    Sink sink_;
    std::uint64_t left_;
};

/// Called once per tensor, in order, to append exactly `header.tensor_bytes(tensor)` bytes.
using TensorSource = FunctionRef<void(std::size_t tensor, TensorOutput& output)>;

enum class Overwrite { No, Yes };

/// Writes the file tensor by tensor, so memory does not grow with its size. It is written under a temporary
/// name beside `path` and takes its name when it is complete; on any failure, also one thrown by `source`,
/// the temporary file is removed and what stood at `path` is unchanged. An existing file is refused unless
/// `overwrite` says otherwise.
void write_file(const std::filesystem::path& path, const Header& header, Overwrite overwrite,
                TensorSource source);

/// The same file in memory.
std::vector<std::byte> write_bytes(const Header& header, TensorSource source);

}  // namespace coterie::gguf
