#include "scheduler/text/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace coterie::scheduler {
namespace {

/// The length of the longest end of `text` that begins `stop` without being all of it.
std::size_t open_end(std::string_view text, std::string_view stop) {
    for (std::size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
        if (text.substr(text.size() - length) == stop.substr(0, length)) return length;
    }
    return 0;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
    std::erase(stops_, std::string());
}

std::string StopMatcher::feed(std::string_view piece) {
    if (matched_) return {};
    if (stops_.empty()) return std::string(piece);
    pending_ += piece;
    const std::string* first = nullptr;
    std::size_t first_begin = 0;
    for (const std::string& stop : stops_) {
        const std::size_t begin = pending_.find(stop);
        if (begin == std::string::npos) continue;
        const std::size_t end = begin + stop.size();
        const std::size_t first_end = first ? first_begin + first->size() : std::string::npos;
        if (end > first_end || (end == first_end && begin > first_begin)) continue;
        first = &stop;
        first_begin = begin;
    }
    if (first == nullptr) return take(certain_bytes());
    matched_ = *first;
    std::string rest = take(first_begin);
    pending_.clear();
    return rest;
}

std::string StopMatcher::finish() { return take(pending_.size()); }

std::size_t StopMatcher::certain_bytes() const {
    std::size_t held = 0;
    for (const std::string& stop : stops_) held = std::max(held, open_end(pending_, stop));
    return pending_.size() - held;
}

std::string StopMatcher::take(std::size_t bytes) {
    std::string taken = pending_.substr(0, bytes);
    pending_.erase(0, bytes);
    return taken;
}

}  // namespace coterie::scheduler
