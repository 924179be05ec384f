#include "gguf/reader.h"

#include <bit>
#include <utility>

#include "base/checked.h"
#include "gguf/cursor.h"
#include "gguf/header_reader.h"
#include "gguf/tensor_reader.h"

namespace coterie::gguf {
namespace {

constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 30;

void check_keys(Cursor& cursor, const std::vector<MetadataEntry>& entries) {
    const auto duplicate = NameIndex(entries).duplicate();
    if (!duplicate) return;
    cursor.enter("key", duplicate->second, entries.size());
    cursor.set_name(entries[duplicate->second].name);
    cursor.refuse(ErrorCode::InvalidFile, entries[duplicate->second].value.file_offset,
                  "the key stands twice in the file, as keys {} and {}; get another copy of the model",
                  duplicate->first + 1, duplicate->second + 1);
}

std::uint64_t read_alignment(Cursor& cursor, const Metadata& metadata) {
    constexpr std::string_view kKey = "general.alignment";
    const auto alignment = static_cast<std::uint64_t>(metadata.integer(kKey, kDefaultAlignment));
    if (std::has_single_bit(alignment) && alignment <= kMaxAlignment) return alignment;
    cursor.refuse(ErrorCode::InvalidFile, metadata.find(kKey)->file_offset,
                  "key '{}' is {}, not a power of two up to {}; the file is damaged", kKey,
                  static_cast<std::int64_t>(alignment), kMaxAlignment);
}

}  // namespace

Directory read_directory(std::span<const std::byte> bytes, std::string file) {
    Cursor cursor(bytes, file);
    const FileHeader header = read_header(cursor);
    auto entries = read_metadata(cursor, header.keys);
    check_keys(cursor, entries);
    Metadata metadata(file, std::move(entries));
    const std::uint64_t alignment = read_alignment(cursor, metadata);
    const auto infos = read_tensor_infos(cursor, header.tensors, alignment);
    const auto data_offset = checked_align_up(cursor.offset(), alignment);
    COTERIE_CHECK(data_offset);  // the file's size and the alignment are far below 2^63
    auto tensors = locate_tensors(cursor, infos, bytes, *data_offset);
    return {header.version, alignment, *data_offset, std::move(metadata), std::move(tensors)};
}

}  // namespace coterie::gguf
