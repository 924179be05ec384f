#include "gguf/cursor.h"

#include "gguf/printable.h"

namespace coterie::gguf {

void Cursor::enter(std::string_view kind, std::uint64_t index, std::uint64_t count) {
    kind_ = kind;
    name_ = {};
    index_ = index;
    count_ = count;
}

std::span<const std::byte> Cursor::take_bytes(std::uint64_t count, std::string_view what) {
    if (count > remaining()) {
        refuse(ErrorCode::InvalidFile, offset_,
               "{} needs {} bytes and {} are left; the file is cut short or damaged, download it again", what,
               count, remaining());
    }
    const auto result = bytes_.subspan(offset_, count);
    offset_ += count;
    return result;
}

std::string_view Cursor::take_string(std::uint64_t limit, std::string_view what) {
    const std::uint64_t start = offset_;
    const auto length = take<std::uint64_t>(what);
    if (length > limit) {
        refuse(ErrorCode::InvalidFile, start,
               "{} has {} bytes, more than the {} allowed; the file is damaged", what, length, limit);
    }
    const auto bytes = take_bytes(length, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string Cursor::located(std::uint64_t offset, const std::string& message) const {
    if (kind_.empty()) return fmt::format("{}: byte {}: {}", file_, offset, message);
    if (name_.empty()) {
        return fmt::format("{}: byte {}: {} {} of {}: {}", file_, offset, kind_, index_ + 1, count_, message);
    }
    return fmt::format("{}: byte {}: {} '{}': {}", file_, offset, kind_, printable(name_), message);
}

}  // namespace coterie::gguf
