#include <algorithm>
#include <bit>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "gguf/printable.h"
#include "gguf/writer.h"

namespace coterie::gguf {
namespace {

void put_bytes(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
    const std::size_t end = out.size();
    out.resize(end + bytes.size());
    std::copy(bytes.begin(), bytes.end(), out.begin() + static_cast<std::ptrdiff_t>(end));
}

template <typename T>
void put(std::vector<std::byte>& out, T value) {
    put_bytes(out, std::as_bytes(std::span(&value, 1)));
}

void put_string(std::vector<std::byte>& out, std::string_view text) {
    put<std::uint64_t>(out, text.size());
    put_bytes(out, std::as_bytes(std::span(text)));
}

std::uint64_t padded(std::uint64_t bytes, std::uint64_t alignment) {
    const auto result = checked_align_up(bytes, alignment);
    if (!result) fail(ErrorCode::InvalidArgument, "a GGUF file of more than 2^64 bytes cannot be written");
    return *result;
}

std::uint64_t size_of(const TensorSpec& tensor) {
    const bool shaped = !tensor.dims.empty() && tensor.dims.size() <= 4;
    const auto row = shaped ? row_bytes(tensor.type, tensor.dims[0]) : std::nullopt;
    std::optional<std::uint64_t> bytes;
    if (row && *row > 0) bytes = static_cast<std::uint64_t>(*row);
    for (std::size_t i = 1; bytes && i < tensor.dims.size(); ++i) {
        bytes = tensor.dims[i] > 0 ? checked_multiply(*bytes, static_cast<std::uint64_t>(tensor.dims[i]))
                                   : std::nullopt;
    }
    if (!bytes || *bytes > INT64_MAX) {
        fail(ErrorCode::InvalidArgument, "tensor '{}' has a shape that type {} cannot have in a GGUF file",
             printable(tensor.name), traits(tensor.type).name);
    }
    return *bytes;
}

void insert_name(std::set<std::string, std::less<>>& names, std::string_view name, std::string_view kind) {
    if (!name.empty() && names.emplace(name).second) return;
    fail(ErrorCode::InvalidArgument, "{} '{}' is empty or stands twice in the GGUF file to be written", kind,
         printable(name));
}

}  // namespace

Header::Header(std::uint32_t alignment) : alignment_(alignment) {
    COTERIE_CHECK(std::has_single_bit(alignment));
    if (alignment != kDefaultAlignment) set("general.alignment", alignment);
}

void Header::add_key(std::string_view key, ValueType type) {
    insert_name(keys_, key, "key");
    put_string(metadata_, key);
    put(metadata_, type);
}

void Header::add_value(std::string_view key, ValueType type, std::span<const std::byte> bytes) {
    add_key(key, type);
    put_bytes(metadata_, bytes);
}

void Header::add_array(std::string_view key, ValueType type, std::uint64_t count,
                       std::span<const std::byte> bytes) {
    add_key(key, ValueType::Array);
    put(metadata_, type);
    put(metadata_, count);
    put_bytes(metadata_, bytes);
}

void Header::set(std::string_view key, std::string_view value) {
    add_key(key, ValueType::String);
    put_string(metadata_, value);
}

void Header::set_array(std::string_view key, std::span<const std::string> values) {
    add_array(key, ValueType::String, values.size(), {});
    for (const std::string& value : values) put_string(metadata_, value);
}

void Header::add_tensor(TensorSpec tensor) {
    const std::uint64_t bytes = size_of(tensor);
    insert_name(tensor_names_, tensor.name, "tensor");
    tensor_bytes_.push_back(bytes);
    tensors_.push_back(std::move(tensor));
}

std::uint64_t Header::file_bytes() const {
    std::uint64_t total = serialise().size();
    for (const std::uint64_t bytes : tensor_bytes_) {
        total = padded(total, alignment_) + bytes;
    }
    return padded(total, alignment_);
}

std::vector<std::byte> Header::serialise() const {
    std::vector<std::byte> out;
    put_bytes(out, std::as_bytes(std::span(std::string_view("GGUF"))));
    put<std::uint32_t>(out, 3);
    put<std::uint64_t>(out, tensors_.size());
    put<std::uint64_t>(out, keys_.size());
    put_bytes(out, metadata_);
    std::uint64_t offset = 0;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        const TensorSpec& tensor = tensors_[i];
        put_string(out, tensor.name);
        put(out, static_cast<std::uint32_t>(tensor.dims.size()));
        for (const std::int64_t dim : tensor.dims) put(out, dim);
        put(out, tensor.type);
        put(out, offset);
        offset = padded(offset + tensor_bytes_[i], alignment_);
    }
    out.resize(padded(out.size(), alignment_));
    return out;
}

}  // namespace coterie::gguf
