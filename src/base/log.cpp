#include "base/log.h"

#include <atomic>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace coterie::log {
namespace {

std::atomic<Level> g_level{Level::Warning};

spdlog::logger& logger() {
    static spdlog::logger instance = [] {
        spdlog::logger made("coterie", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
        made.set_pattern("coterie: %^%l%$: %v");
        made.set_level(spdlog::level::trace);  // filtered here, by set_level
        made.flush_on(spdlog::level::trace);
        return made;
    }();
    return instance;
}

}  // namespace

void set_level(Level level) { g_level = level; }
bool enabled(Level level) { return level <= g_level; }

void write(Level level, std::string_view message) {
    if (!enabled(level)) return;
    const spdlog::string_view_t text(message.data(), message.size());
    switch (level) {
        case Level::Error:
            logger().error(text);
            return;
        case Level::Warning:
            logger().warn(text);
            return;
        case Level::Info:
            logger().info(text);
            return;
        case Level::Debug:
            logger().debug(text);
            return;
    }
}

}  // namespace coterie::log
