// <tool_call>NAME
// <arg_key>KEY</arg_key>
// <arg_value>VALUE</arg_value>
// </tool_call>

#include <nlohmann/json.hpp>

#include "chat/tools/argument_values.h"
#include "chat/tools/formats/call_parser.h"

namespace coterie {
namespace {

constexpr std::string_view kOpen = "<tool_call>";
constexpr std::string_view kKey = "<arg_key>";
constexpr std::string_view kKeyEnd = "</arg_key>";
constexpr std::string_view kValue = "<arg_value>";
constexpr std::string_view kValueEnd = "</arg_value>";
constexpr std::string_view kClose = "</tool_call>";
constexpr std::string_view kMarkers[] = {kOpen};
constexpr std::string_view kNameEnds[] = {"\n", kKey, kClose};

class GlmParser final : public CallParser {
  public:
    using CallParser::CallParser;

  private:
    enum class State { Content, Name, Parts, Key, Value, Tail };

    bool step() override {
        switch (state_) {
            case State::Content:
                if (!find_marker(kMarkers)) return false;
                state_ = State::Name;
                return true;
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

    void reset() override { state_ = State::Content; }
    bool is_behind_call() const override { return state_ == State::Tail; }

    bool step_name() {
        // A line's end may come before the name.
        const std::size_t start = std::min(pending_.find_first_not_of(" \t\r\n"), pending_.size());
        const auto end = first_marker(std::string_view(pending_).substr(start), kNameEnds);
        if (!end || end->number == std::size(kNameEnds)) return false;
        const std::string name(trimmed(std::string_view(pending_).substr(start, end->place)));
        tool_ = writer_.find(name);
        if (!tool_) {
            give_up();
            return true;
        }
        take_bytes(start + end->place);
        begin_call(name);
        writer_.arguments("{");
        is_first_ = true;
        state_ = State::Parts;
        return true;
    }

    bool step_parts() {
        if (match(kKey) == Match::Whole) {
            take(kKey);
            state_ = State::Key;
        } else if (match(kClose) == Match::Whole) {
            take(kClose);
            writer_.arguments("}");
            end_call();
            state_ = State::Tail;
        } else if (match(kValueEnd) == Match::Whole) {
            take(kValueEnd);  // written twice
        } else if (match(kKey) == Match::Partly || match(kClose) == Match::Partly ||
                   match(kValueEnd) == Match::Partly) {
            return false;
        } else {
            give_up();
        }
        return true;
    }

    bool step_key() {
        const std::size_t end = pending_.find(kKeyEnd);
        if (end == std::string::npos) return false;
        const std::string_view rest = std::string_view(pending_).substr(end + kKeyEnd.size());
        const std::size_t value = std::min(rest.find_first_not_of(" \t\r\n"), rest.size());
        if (!rest.substr(value).starts_with(kValue)) {
            if (kValue.starts_with(rest.substr(value))) return false;
            give_up();
            return true;
        }
        key_ = trimmed(std::string_view(pending_).substr(0, end));
        take_bytes(end + kKeyEnd.size() + value + kValue.size());
        state_ = State::Value;
        return true;
    }

    bool step_value() {
        const std::size_t end = pending_.find(kValueEnd);
        if (end == std::string::npos) return false;
        const std::string value = take_bytes(end);
        take_bytes(kValueEnd.size());
        writer_.arguments(is_first_ ? "" : ", ");
        is_first_ = false;
        writer_.arguments(
            nlohmann::json(key_).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
        writer_.arguments(": " + argument_to_json(*tool_, key_, value));
        state_ = State::Parts;
        return true;
    }

    bool step_tail() {
        const Match close = match(kClose);
        if (close == Match::Partly) return false;
        if (close == Match::Whole) {
            skip(kClose);
            return true;
        }
        raw_.clear();
        state_ = State::Content;
        return true;
    }

    State state_ = State::Content;
    const ToolDefinition* tool_ = nullptr;
    std::string key_;
    bool is_first_ = true;
};

}  // namespace

std::unique_ptr<CallParser> make_glm_parser(EventWriter& writer) {
    return std::make_unique<GlmParser>(writer);
}

}  // namespace coterie
