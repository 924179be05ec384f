// <tool_call>
// {"name": "NAME", "arguments": {...}}
// </tool_call>

#include "chat/tools/formats/call_parser.h"
#include "chat/tools/formats/json_call.h"

namespace coterie {
namespace {

constexpr std::string_view kOpen = "<tool_call>";
constexpr std::string_view kClose = "</tool_call>";
constexpr std::string_view kMarkers[] = {kOpen};

class HermesParser final : public CallParser {
  public:
    using CallParser::CallParser;

  private:
    enum class State { Content, Head, WholeObject, Arguments, Tail };

    bool step() override {
        switch (state_) {
            case State::Content:
                if (!find_marker(kMarkers)) return false;
                state_ = State::Head;
                return true;
            case State::Head:
                return step_head();
            case State::WholeObject:
                return step_whole_object();
            case State::Arguments:
                if (!step_json_arguments()) return false;
                state_ = State::Tail;
                return true;
            case State::Tail:
                return step_tail();
        }
        return false;
    }

    void reset() override { state_ = State::Content; }
    bool is_behind_call() const override { return state_ == State::Tail; }

    /// Where the name comes first, arguments can stream; else the whole object must be there.
    bool step_head() {
        const JsonCallHead head = read_json_call_head(pending_);
        if (head.kind == JsonCallHead::Kind::Partly) return false;
        if (head.kind == JsonCallHead::Kind::No) {
            begin_object();
            state_ = State::WholeObject;
            return true;
        }
        if (!writer_.find(head.name)) {
            give_up();
            return true;
        }
        take_bytes(head.bytes);
        begin_call(head.name);
        state_ = State::Arguments;
        return true;
    }

    bool step_whole_object() {
        const Match object = step_object();
        if (object == Match::Whole) {
            has_outer_brace_ = false;
            state_ = State::Tail;
        }
        return object != Match::Partly;
    }

    /// The object's own brace and the closing mark; models forget either, or repeat it.
    bool step_tail() {
        if (has_outer_brace_ && match("}") == Match::Whole) {
            skip("}");
            has_outer_brace_ = false;
            return true;
        }
        const Match close = match(kClose);
        if (close == Match::Whole) {
            skip(kClose);
            return true;
        }
        if (close == Match::Partly || (has_outer_brace_ && match("}") == Match::Partly)) return false;
        has_outer_brace_ = true;
        raw_.clear();
        state_ = State::Content;
        return true;
    }

    State state_ = State::Content;
    bool has_outer_brace_ = true;
};

}  // namespace

std::unique_ptr<CallParser> make_hermes_parser(EventWriter& writer) {
    return std::make_unique<HermesParser>(writer);
}

}  // namespace coterie
