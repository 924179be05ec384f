#include "cli/replay/slot_list.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "expert_cache/replay/replay.h"

namespace coterie::cli {
namespace {

template <typename Number>
std::optional<Number> parse(const std::string& text, std::size_t length) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + length, value);
    if (error != std::errc() || end != text.data() + length) return std::nullopt;
    return value;
}

std::int32_t parse_one(const std::string& text, std::int32_t experts) {
    if (text.ends_with('%')) {
        const auto percent = parse<double>(text, text.size() - 1);
        if (percent && *percent > 0.0 && *percent <= 100.0) return expert_cache::slots_of(*percent, experts);
    } else {
        const auto slots = parse<std::int32_t>(text, text.size());
        if (slots && *slots >= 1 && *slots <= experts) return *slots;
    }
    fail(ErrorCode::InvalidArgument,
         "--slots {}: give slots per layer from 1 to {}, or a share of the experts up to 100%", text,
         experts);
}

}  // namespace

std::vector<std::int32_t> parse_slots(const std::vector<std::string>& list, std::int32_t experts) {
    std::vector<std::int32_t> slots;
    for (const std::string& text : list) slots.push_back(parse_one(text, experts));
    std::sort(slots.begin(), slots.end());
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
    return slots;
}

}  // namespace coterie::cli
