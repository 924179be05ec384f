// <tool_call>
// <function=NAME>
// <parameter=KEY>
// VALUE
// </parameter>
// </function>
// </tool_call>

#include <nlohmann/json.hpp>

#include "chat/tools/argument_values.h"
#include "chat/tools/formats/call_parser.h"

namespace coterie {
namespace {

constexpr std::string_view kOpen = "<tool_call>";
constexpr std::string_view kFunction = "<function=";
constexpr std::string_view kParameter = "<parameter=";
constexpr std::string_view kParameterEnd = "</parameter>";
constexpr std::string_view kFunctionEnd = "</function>";
constexpr std::string_view kClose = "</tool_call>";
constexpr std::string_view kMarkers[] = {kOpen, kFunction};
// Models forget to close a parameter: then the next part ends it.
constexpr std::string_view kValueEnds[] = {kParameterEnd, "\n<parameter=", "\n</function>"};

class QwenCoderParser final : public CallParser {
  public:
    using CallParser::CallParser;

  private:
    enum class State { Content, Function, Name, Parts, Key, Value, Tail };

    bool step() override {
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

    void reset() override { state_ = State::Content; }
    bool is_behind_call() const override { return state_ == State::Tail; }

    /// The outer mark may be missing.
    bool step_content() {
        const auto marker = find_marker(kMarkers);
        if (!marker) return false;
        state_ = *marker == 0 ? State::Function : State::Name;
        return true;
    }

    bool step_function() {
        const Match found = match(kFunction);
        if (found == Match::Partly) return false;
        if (found == Match::No) {
            give_up();
            return true;
        }
        take(kFunction);
        state_ = State::Name;
        return true;
    }

    bool step_name() {
        const std::size_t end = pending_.find_first_of(">\n");
        if (end == std::string::npos) return false;
        const std::string name(trimmed(std::string_view(pending_).substr(0, end)));
        tool_ = writer_.find(name);
        if (!tool_ || pending_[end] != '>') {
            give_up();
            return true;
        }
        take_bytes(end + 1);
        begin_call(name);
        writer_.arguments("{");
        is_first_ = true;
        state_ = State::Parts;
        return true;
    }

    bool step_parts() {
        if (match(kParameter) == Match::Whole) {
            take(kParameter);
            state_ = State::Key;
        } else if (match(kFunctionEnd) == Match::Whole) {
            take(kFunctionEnd);
            writer_.arguments("}");
            end_call();
            state_ = State::Tail;
        } else if (match(kParameterEnd) == Match::Whole) {
            take(kParameterEnd);  // written twice
        } else if (match(kParameter) == Match::Partly || match(kFunctionEnd) == Match::Partly ||
                   match(kParameterEnd) == Match::Partly) {
            return false;
        } else {
            give_up();
        }
        return true;
    }

    bool step_key() {
        const std::size_t end = pending_.find('>');
        if (end == std::string::npos) return false;
        key_ = trimmed(std::string_view(pending_).substr(0, end));
        take_bytes(end + 1);
        state_ = State::Value;
        return true;
    }

    bool step_value() {
        const auto end = first_marker(pending_, kValueEnds);
        if (!end || end->number == std::size(kValueEnds)) return false;
        std::string value = take_bytes(end->place);
        if (end->number == 0) take_bytes(kParameterEnd.size());
        if (value.starts_with('\n')) value.erase(0, 1);
        if (value.ends_with('\n')) value.pop_back();
        writer_.arguments(is_first_ ? "" : ", ");
        is_first_ = false;
        writer_.arguments(
            nlohmann::json(key_).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
        writer_.arguments(": " + argument_to_json(*tool_, key_, value));
        state_ = State::Parts;
        return true;
    }

    bool step_tail() {
        for (const std::string_view mark : {kFunctionEnd, kClose}) {
            if (match(mark) != Match::Whole) continue;
            skip(mark);
            return true;
        }
        if (match(kFunctionEnd) == Match::Partly || match(kClose) == Match::Partly) return false;
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

std::unique_ptr<CallParser> make_qwen_coder_parser(EventWriter& writer) {
    return std::make_unique<QwenCoderParser>(writer);
}

}  // namespace coterie
