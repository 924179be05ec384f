#include "cli/flag_values.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <fmt/format.h>

namespace coterie::cli {

CLI::Validator whole_number(std::int64_t lowest, std::int64_t highest) {
    const auto check = [lowest, highest](std::string& text) -> std::string {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = error == std::errc() && end == text.data() + text.size();
        if (whole && value >= lowest && value <= highest) return "";
        return fmt::format("{} is not a whole number from {} to {}", text, lowest, highest);
    };
    return CLI::Validator(check, "");
}

}  // namespace coterie::cli
