#include "base/progress_bar.h"

#include <algorithm>
#include <fmt/core.h>
#include <unistd.h>

#include "base/standard_streams.h"

namespace coterie {
namespace {

constexpr int kWidth = 24;
constexpr auto kDelay = std::chrono::milliseconds(500);
constexpr auto kInterval = std::chrono::milliseconds(100);

std::string amount(ProgressBar::Unit unit, double value) {
    if (unit == ProgressBar::Unit::Tokens) return fmt::format("{:.0f} tokens", value);
    if (value >= 1e9) return fmt::format("{:.1f} GB", value / 1e9);
    return fmt::format("{:.0f} MB", value / 1e6);
}

}  // namespace

ProgressBar::ProgressBar(std::string label, Unit unit)
    : label_(std::move(label)), unit_(unit), terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
    if (shown_) say("\r\033[K");
}

void ProgressBar::update(std::uint64_t done, std::uint64_t total) {
    if (!terminal_) return;
    const Clock::time_point now = Clock::now();
    if (now - start_ < kDelay || now - drawn_ < kInterval) return;
    drawn_ = now;
    shown_ = true;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    say(fmt::format("\r\033[K{}", line(label_, unit_, done, total, seconds)));
}

std::string ProgressBar::line(const std::string& label, Unit unit, std::uint64_t done, std::uint64_t total,
                              double seconds) {
    const double share =
        total == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    const int filled = static_cast<int>(share * kWidth);
    const std::string bar = std::string(static_cast<std::size_t>(filled), '=') +
                            (filled < kWidth ? ">" : "") +
                            std::string(static_cast<std::size_t>(std::max(0, kWidth - filled - 1)), ' ');
    const double rate = seconds > 0.0 ? static_cast<double>(done) / seconds : 0.0;
    return fmt::format("{} [{}] {:3.0f} %  {} of {}  {}/s", label, bar, 100.0 * share,
                       amount(unit, static_cast<double>(done)), amount(unit, static_cast<double>(total)),
                       amount(unit, rate));
}

}  // namespace coterie
