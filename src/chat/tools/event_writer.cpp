#include "chat/tools/event_writer.h"

#include <algorithm>
#include <utility>

namespace coterie {

EventWriter::EventWriter(std::vector<ToolDefinition> tools, std::uint64_t id_seed)
    : tools_(std::move(tools)), random_(id_seed) {}

void EventWriter::reasoning(std::string_view text) { add_text(AnswerEvent::Kind::Reasoning, text); }

void EventWriter::content(std::string_view text) {
    const std::size_t end = text.find_last_not_of(" \t\r\n") + 1;  // npos + 1 is 0
    if (end > 0) {
        add_text(AnswerEvent::Kind::Content, std::exchange(held_space_, {}));
        add_text(AnswerEvent::Kind::Content, text.substr(0, end));
    }
    held_space_ += text.substr(end);
}

void EventWriter::begin_call(std::string_view name, std::string_view id) {
    held_space_.clear();
    events_->push_back({.kind = AnswerEvent::Kind::CallBegin,
                        .call = calls_++,
                        .name = std::string(name),
                        .id = id.empty() ? new_id() : std::string(id)});
}

void EventWriter::arguments(std::string_view text) { add_text(AnswerEvent::Kind::Arguments, text); }

void EventWriter::end_call() { events_->push_back({.kind = AnswerEvent::Kind::CallEnd, .call = calls_ - 1}); }

void EventWriter::finish() {
    if (calls_ == 0) add_text(AnswerEvent::Kind::Content, held_space_);
    held_space_.clear();
}

/// Joins what belongs together, so that one feed gives one delta.
void EventWriter::add_text(AnswerEvent::Kind kind, std::string_view text) {
    if (text.empty()) return;
    const std::size_t call = kind == AnswerEvent::Kind::Arguments ? calls_ - 1 : 0;
    if (!events_->empty() && events_->back().kind == kind && events_->back().call == call) {
        events_->back().text += text;
    } else {
        events_->push_back({.kind = kind, .text = std::string(text), .call = call});
    }
}

const ToolDefinition* EventWriter::find(std::string_view name) const {
    const auto found = std::find_if(tools_.begin(), tools_.end(),
                                    [&](const ToolDefinition& tool) { return tool.name == name; });
    return found == tools_.end() ? nullptr : &*found;
}

std::string EventWriter::new_id() {
    constexpr std::string_view kCharacters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    std::string id;
    for (int i = 0; i < 9; ++i) id += kCharacters[random_.next() % kCharacters.size()];
    return id;
}

}  // namespace coterie
