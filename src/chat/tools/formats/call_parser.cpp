#include "chat/tools/formats/call_parser.h"

#include <algorithm>
#include <utility>

#include "chat/tools/formats/json_call.h"

namespace coterie {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

}  // namespace

std::string_view trimmed(std::string_view text) {
    const std::size_t first = std::min(text.find_first_not_of(kSpace), text.size());
    return text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
}

std::optional<FoundMarker> first_marker(std::string_view text, std::span<const std::string_view> markers) {
    std::optional<FoundMarker> first;
    for (std::size_t number = 0; number < markers.size(); ++number) {
        const std::size_t place = text.find(markers[number]);
        if (place != std::string_view::npos && (!first || place < first->place)) first = {place, number};
    }
    // A cut marker reaches to the end, so it may only stand before a whole one that it overlaps with.
    for (const std::string_view marker : markers) {
        const std::size_t longest = std::min(marker.size() - 1, text.size());
        for (std::size_t place = text.size() - longest; place < text.size(); ++place) {
            if (!marker.starts_with(text.substr(place))) continue;
            if (!first || place < first->place) first = {place, markers.size()};
            break;
        }
    }
    return first;
}

void CallParser::feed(std::string_view text) {
    pending_ += text;
    while (step()) continue;
}

void CallParser::finish() {
    // Of a call that has begun, what is left is half an argument, which is neither arguments nor content.
    if (!call_is_open_ && !is_behind_call()) writer_.content(raw_ + pending_);
    pending_.clear();
    raw_.clear();
    call_is_open_ = false;
    reset();
}

std::optional<std::size_t> CallParser::find_marker(std::span<const std::string_view> markers) {
    const auto found = first_marker(pending_, markers);
    writer_.content(std::string_view(pending_).substr(0, found ? found->place : pending_.size()));
    pending_.erase(0, found ? found->place : pending_.size());
    if (!found || found->number == markers.size()) return std::nullopt;
    raw_.clear();
    take_bytes(markers[found->number].size());
    return found->number;
}

CallParser::Match CallParser::match(std::string_view text) const {
    const std::size_t first = std::min(pending_.find_first_not_of(kSpace), pending_.size());
    const std::string_view rest = std::string_view(pending_).substr(first);
    if (rest.starts_with(text)) return Match::Whole;
    return text.starts_with(rest) ? Match::Partly : Match::No;
}

void CallParser::take(std::string_view text) {
    const std::size_t first = std::min(pending_.find_first_not_of(kSpace), pending_.size());
    take_bytes(first + text.size());
}

CallParser::Match CallParser::require(std::string_view text) {
    const Match found = match(text);
    if (found == Match::Whole) take(text);
    if (found == Match::No) give_up();
    return found;
}

void CallParser::skip(std::string_view text) {
    const std::size_t first = std::min(pending_.find_first_not_of(kSpace), pending_.size());
    pending_.erase(0, first + text.size());
}

CallParser::Match CallParser::skip_one(std::span<const std::string_view> marks) {
    Match best = Match::No;
    for (const std::string_view mark : marks) {
        const Match found = match(mark);
        if (found == Match::Whole) {
            skip(mark);
            return found;
        }
        if (found == Match::Partly) best = found;
    }
    return best;
}

std::string CallParser::take_bytes(std::size_t count) {
    std::string taken = pending_.substr(0, count);
    pending_.erase(0, count);
    if (!call_is_open_) raw_ += taken;
    return taken;
}

void CallParser::give_up() {
    writer_.content(std::exchange(raw_, {}));
    call_is_open_ = false;
    reset();
}

void CallParser::begin_call(std::string_view name, std::string_view id) {
    raw_.clear();
    begin_object();
    call_is_open_ = true;
    writer_.begin_call(name, id);
}

void CallParser::end_call() {
    call_is_open_ = false;
    writer_.end_call();
}

bool CallParser::step_json_arguments() {
    const std::size_t count = scanner_.feed(pending_);
    const std::string text = take_bytes(count);
    json_ += text;
    writer_.arguments(text);
    if (!scanner_.is_complete()) return false;
    if (is_json_object(json_)) {
        end_call();
    } else {
        call_is_open_ = false;
    }
    return true;
}

void CallParser::begin_object() {
    scanner_ = {};
    json_.clear();
}

CallParser::Match CallParser::step_object() {
    if (json_.empty()) take("");
    if (!pending_.empty()) json_ += take_bytes(scanner_.feed(pending_));
    if (!scanner_.is_complete()) return Match::Partly;
    const auto call = read_json_call(json_);
    if (!call || !writer_.find(call->name)) {
        give_up();
        return Match::No;
    }
    begin_call(call->name, call->id);
    writer_.arguments(call->arguments);
    end_call();
    return Match::Whole;
}

}  // namespace coterie
