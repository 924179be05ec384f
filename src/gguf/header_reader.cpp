#include "gguf/header_reader.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "gguf/printable.h"

namespace coterie::gguf {
namespace {

constexpr std::uint64_t kMaxStringBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxArrayElements = std::uint64_t{1} << 30;
// Far above any real file (a few dozen keys, a hundred thousand tensors), and low enough that a hostile one
// cannot make the directory take more than about 100 MB.
constexpr std::uint64_t kMaxKeys = 65536;
constexpr std::uint64_t kMaxTensors = std::uint64_t{1} << 18;

// The least that one key (empty name, type, one byte) and one tensor (empty name, one dimension) take in a
// file.
constexpr std::uint64_t kLeastKeyBytes = 8 + 4 + 1;
constexpr std::uint64_t kLeastTensorBytes = 8 + 4 + 8 + 4 + 8;

/// What people pass in place of a GGUF file, by how it begins.
struct Lookalike {
    std::string_view start;
    std::string_view meaning;
};
constexpr std::array<Lookalike, 6> kLookalikes = {{
    {"version https://git-lfs", "it is a Git LFS pointer, fetch the file itself with 'git lfs pull'"},
    {"<", "it looks like a web page, download the file itself"},
    {"PK", "it is a zip archive or a PyTorch checkpoint, convert it to GGUF"},
    {"lmgg", "it is a GGML file of before GGUF, convert it to GGUF"},
    {"fmgg", "it is a GGML file of before GGUF, convert it to GGUF"},
    {"tjgg", "it is a GGML file of before GGUF, convert it to GGUF"},
}};

void check_magic(Cursor& cursor, std::string_view start) {
    if (std::string_view("GGUF").starts_with(start.substr(0, 4)))
        return;  // or cut within it, which shows next
    for (const auto& [prefix, meaning] : kLookalikes) {
        if (start.starts_with(prefix)) {
            cursor.refuse(ErrorCode::InvalidFile, 0, "not a GGUF file: {}", meaning);
        }
    }
    cursor.refuse(ErrorCode::InvalidFile, 0, "not a GGUF file: it begins with '{}' in place of 'GGUF'",
                  printable(start.substr(0, 4)));
}

std::uint32_t read_version(Cursor& cursor) {
    const std::uint64_t at = cursor.offset();
    const auto version = cursor.take<std::uint32_t>("the version");
    if (version == 2 || version == 3) return version;
    // A small number in the other byte order has its low half empty.
    if (version != 0 && (version & 0xFFFF) == 0) {
        cursor.refuse(ErrorCode::Unsupported, at,
                      "the file is big-endian; get the little-endian file or convert the model again");
    }
    if (version == 1) {
        cursor.refuse(ErrorCode::Unsupported, at,
                      "GGUF version 1 is no longer in use; get a newer file or convert the model again");
    }
    cursor.refuse(
        ErrorCode::Unsupported, at,
        "GGUF version {} is unknown, versions 2 and 3 are read; the file is damaged or needs a newer program",
        version);
}

void check_count(Cursor& cursor, std::uint64_t at, std::uint64_t count, std::uint64_t limit,
                 std::uint64_t least_bytes, std::string_view kind) {
    if (count > limit) {
        cursor.refuse(ErrorCode::InvalidFile, at,
                      "the file claims {} {}, more than the {} allowed; it is damaged", count, kind, limit);
    }
    if (count * least_bytes > cursor.remaining()) {
        cursor.refuse(
            ErrorCode::InvalidFile, at,
            "the file claims {} {} but only {} bytes follow; it is cut short or damaged, download it again",
            count, kind, cursor.remaining());
    }
}

ValueType read_type(Cursor& cursor, std::string_view what) {
    const std::uint64_t at = cursor.offset();
    const auto id = cursor.take<std::uint32_t>(what);
    const auto type = value_type(id);
    if (!type) {
        cursor.refuse(ErrorCode::InvalidFile, at,
                      "{} is {}, which GGUF does not define; the file is damaged or needs another program",
                      what, id);
    }
    return *type;
}

/// Steps over packed strings and returns their bytes.
std::span<const std::byte> take_strings(Cursor& cursor, std::uint64_t count) {
    Cursor start = cursor;
    for (std::uint64_t i = 0; i < count; ++i) cursor.take_string(kMaxStringBytes, "a string");
    return start.take_bytes(cursor.offset() - start.offset(), "strings");
}

void check_booleans(Cursor& cursor, const Value& value) {
    const auto wrong =
        std::find_if(value.bytes.begin(), value.bytes.end(), [](std::byte b) { return b > std::byte{1}; });
    if (wrong == value.bytes.end()) return;
    cursor.refuse(ErrorCode::InvalidFile,
                  value.file_offset + static_cast<std::uint64_t>(std::distance(value.bytes.begin(), wrong)),
                  "a bool is {}, not 0 or 1; the file is damaged or badly converted",
                  static_cast<int>(*wrong));
}

Value read_elements(Cursor& cursor, ValueType type, bool is_array, std::uint64_t count) {
    Value value{
        .type = type, .is_array = is_array, .count = count, .bytes = {}, .file_offset = cursor.offset()};
    if (type == ValueType::String) {
        value.bytes = take_strings(cursor, count);
    } else {
        value.bytes = cursor.take_bytes(count * element_bytes(type), "the value");
    }
    if (type == ValueType::Bool) check_booleans(cursor, value);
    return value;
}

Value read_array(Cursor& cursor) {
    const std::uint64_t at = cursor.offset();
    const ValueType type = read_type(cursor, "the element type");
    if (type == ValueType::Array) {
        cursor.refuse(ErrorCode::Unsupported, at,
                      "arrays of arrays are not supported; convert the model again");
    }
    const auto count = cursor.take<std::uint64_t>("the array's length");
    const std::uint64_t least = type == ValueType::String ? 8 : element_bytes(type);
    if (count > kMaxArrayElements || count * least > cursor.remaining()) {
        cursor.refuse(ErrorCode::InvalidFile, at + 4,
                      "an array claims {} elements of type {} but only {} bytes follow (and at most {} "
                      "elements are allowed); the file is cut short or damaged, download it again",
                      count, name(type), cursor.remaining(), kMaxArrayElements);
    }
    return read_elements(cursor, type, true, count);
}

MetadataEntry read_entry(Cursor& cursor) {
    const std::uint64_t at = cursor.offset();
    const std::string_view key = cursor.take_string(kMaxNameBytes, "the key's name");
    if (key.empty()) {
        cursor.refuse(ErrorCode::InvalidFile, at,
                      "the key's name is empty; the file is damaged or badly converted");
    }
    cursor.set_name(key);
    const ValueType type = read_type(cursor, "the value's type");
    return {key, type == ValueType::Array ? read_array(cursor) : read_elements(cursor, type, false, 1)};
}

}  // namespace

FileHeader read_header(Cursor& cursor) {
    if (cursor.remaining() == 0)
        cursor.refuse(ErrorCode::InvalidFile, 0, "the file is empty; download it again");
    Cursor ahead = cursor;
    const auto start = ahead.take_bytes(std::min<std::uint64_t>(cursor.remaining(), 24), "the header");
    check_magic(cursor, {reinterpret_cast<const char*>(start.data()), start.size()});

    cursor.take_bytes(4, "the magic");
    FileHeader header{};
    header.version = read_version(cursor);
    const std::uint64_t counts = cursor.offset();
    header.tensors = cursor.take<std::uint64_t>("the number of tensors");
    header.keys = cursor.take<std::uint64_t>("the number of keys");
    check_count(cursor, counts, header.tensors, kMaxTensors, kLeastTensorBytes, "tensors");
    check_count(cursor, counts + 8, header.keys, kMaxKeys, kLeastKeyBytes, "keys");
    return header;
}

std::vector<MetadataEntry> read_metadata(Cursor& cursor, std::uint64_t keys) {
    std::vector<MetadataEntry> entries;
    entries.reserve(keys);
    for (std::uint64_t i = 0; i < keys; ++i) {
        cursor.enter("key", i, keys);
        entries.push_back(read_entry(cursor));
    }
    cursor.leave();
    return entries;
}

}  // namespace coterie::gguf
