#include "gguf/shard_name.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

namespace coterie::gguf {
namespace {

constexpr std::string_view kPattern = "-#####-of-#####.gguf";  // # stands for a digit

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool matches(std::string_view text) {
    return std::equal(text.begin(), text.end(), kPattern.begin(), kPattern.end(),
                      [](char c, char p) { return p == '#' ? is_digit(c) : c == p; });
}

int five_digits(std::string_view text) {
    int value = 0;
    for (const char c : text.substr(0, 5)) value = value * 10 + (c - '0');
    return value;
}

}  // namespace

std::filesystem::path ShardName::path_of(int other_number) const {
    return folder / fmt::format("{}-{:05}-of-{:05}.gguf", prefix, other_number, count);
}

std::optional<ShardName> parse_shard_name(const std::filesystem::path& path) {
    const std::string name = path.filename().string();
    if (name.size() < kPattern.size()) return std::nullopt;
    const std::string_view tail = std::string_view(name).substr(name.size() - kPattern.size());
    if (!matches(tail)) return std::nullopt;
    ShardName result{.folder = path.parent_path(),
                     .prefix = name.substr(0, name.size() - kPattern.size()),
                     .number = five_digits(tail.substr(1)),
                     .count = five_digits(tail.substr(10))};
    if (result.count < 2 || result.number < 1 || result.number > result.count) return std::nullopt;
    return result;
}

}  // namespace coterie::gguf
