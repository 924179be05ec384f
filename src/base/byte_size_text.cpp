#include "base/byte_size_text.h"

#include <fmt/core.h>
#include <string_view>

namespace coterie {

std::string byte_size_text(std::uint64_t bytes) {
    constexpr std::string_view kUnits = "KMGT";
    if (bytes == 0) return "0";
    if (bytes < 1000) return fmt::format("{} B", bytes);
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (value /= 1024; value >= 999.5 && unit + 1 < kUnits.size(); value /= 1024) ++unit;
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f} {}iB", value, decimals, kUnits[unit]);
}

}  // namespace coterie
