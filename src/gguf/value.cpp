#include "gguf/value.h"

#include <array>

namespace coterie::gguf {
namespace {

struct TypeRow {
    std::string_view name;
    std::uint64_t bytes;
    bool integer;
    bool number;
};

// Indexed by id.
constexpr std::array<TypeRow, 13> kTypes = {{
    {"u8", 1, true, true},
    {"i8", 1, true, true},
    {"u16", 2, true, true},
    {"i16", 2, true, true},
    {"u32", 4, true, true},
    {"i32", 4, true, true},
    {"f32", 4, false, true},
    {"bool", 1, true, true},
    {"string", 0, false, false},
    {"array", 0, false, false},
    {"u64", 8, true, true},
    {"i64", 8, true, true},
    {"f64", 8, false, true},
}};

const TypeRow& row(ValueType type) { return kTypes[static_cast<std::size_t>(type)]; }

}  // namespace

std::optional<ValueType> value_type(std::uint32_t id) {
    if (id >= kTypes.size()) return std::nullopt;
    return static_cast<ValueType>(id);
}

std::string_view name(ValueType type) { return row(type).name; }
std::uint64_t element_bytes(ValueType type) { return row(type).bytes; }
bool is_integer(ValueType type) { return row(type).integer; }
bool is_number(ValueType type) { return row(type).number; }

}  // namespace coterie::gguf
