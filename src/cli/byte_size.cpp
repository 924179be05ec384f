#include "cli/byte_size.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace coterie::cli {
namespace {

constexpr std::string_view kUnits = "KMGT";
constexpr double kMostBytes = 0x1p62;

[[noreturn]] void refuse(std::string_view text, std::string_view flag) {
    fail(ErrorCode::InvalidArgument, "{} {}: give bytes, or a number with K, M, G or T, such as 512M or 1.5G",
         flag, text);
}

}  // namespace

std::uint64_t parse_byte_size(std::string_view text, std::string_view flag) {
    double value = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    if (error != std::errc() || !(value >= 0) || unit.size() > 1) refuse(text, flag);
    if (!unit.empty()) {
        const std::size_t power =
            kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
        if (power == std::string_view::npos) refuse(text, flag);
        value = std::ldexp(value, 10 * (static_cast<int>(power) + 1));
    }
    if (value > kMostBytes) refuse(text, flag);
    return static_cast<std::uint64_t>(value);
}

}  // namespace coterie::cli
