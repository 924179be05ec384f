#include "chat/tools/formats/plain_parser.h"

#include <utility>

#include "chat/tools/argument_values.h"

namespace coterie {

bool PlainParser::step() {
    switch (state_) {
        case State::Content:
            return step_content();
        case State::Function:
            return step_function();
        case State::Name:
            return step_name();
        case State::Parts:
            return step_parts();
        case State::Key:
            return step_key();
        case State::Value:
            return step_value();
        case State::Tail:
            return step_tail();
    }
    return false;
}

bool PlainParser::accept(const Part& part, State next) {
    if (part.match == Match::No) give_up();
    if (part.match != Match::Whole) return part.match == Match::No;
    take_bytes(part.bytes);
    state_ = next;
    return true;
}

bool PlainParser::step_content() {
    const auto marker = find_marker(marks_.open);
    if (marker) state_ = *marker == 0 ? State::Function : State::Name;
    return marker.has_value();
}

bool PlainParser::step_function() {
    const Match mark = require(marks_.function);
    if (mark == Match::Whole) state_ = State::Name;
    return mark != Match::Partly;
}

bool PlainParser::step_name() {
    Part name = read_name(pending_);
    tool_ = name.match == Match::Whole ? writer_.find(name.text) : nullptr;
    if (name.match == Match::Whole && !tool_) name.match = Match::No;
    const bool goes_on = accept(name, State::Parts);
    if (!tool_) return goes_on;
    begin_call(name.text);
    writer_.arguments("{");
    is_first_ = true;
    return true;
}

bool PlainParser::step_parts() {
    if (match(marks_.argument) == Match::Whole) {
        take(marks_.argument);
        state_ = State::Key;
    } else if (match(marks_.call_end) == Match::Whole) {
        take(marks_.call_end);
        writer_.arguments("}");
        end_call();
        state_ = State::Tail;
    } else if (match(marks_.value_end) == Match::Whole) {
        take(marks_.value_end);
    } else if (match(marks_.argument) == Match::Partly || match(marks_.call_end) == Match::Partly ||
               match(marks_.value_end) == Match::Partly) {
        return false;
    } else {
        give_up();
    }
    return true;
}

bool PlainParser::step_key() {
    Part key = read_key(pending_);
    const bool goes_on = accept(key, State::Value);
    key_ = std::move(key.text);
    return goes_on;
}

bool PlainParser::step_value() {
    const Part value = read_value(pending_);
    if (value.match == Match::Whole) {
        writer_.arguments(is_first_ ? "" : ", ");
        writer_.arguments(json_text(key_) + ": " + argument_to_json(*tool_, key_, value.text));
        is_first_ = false;
    }
    return accept(value, State::Parts);
}

bool PlainParser::step_tail() {
    const Match mark = skip_one(marks_.tail);
    if (mark == Match::No) {
        raw_.clear();
        state_ = State::Content;
    }
    return mark != Match::Partly;
}

}  // namespace coterie
