#pragma once

#include <fmt/core.h>
#include <string_view>
#include <utility>

/// Messages to the user on standard error, one line each. Standard output belongs to results. Never used on
/// the hot path.
namespace coterie::log {

enum class Level { Error, Warning, Info, Debug };

/// Messages above this level are dropped. Warning at first.
void set_level(Level level);
bool enabled(Level level);
void write(Level level, std::string_view message);

template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
    write(Level::Error, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(Level::Warning)) write(Level::Warning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(Level::Info)) write(Level::Info, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(Level::Debug)) write(Level::Debug, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace coterie::log
