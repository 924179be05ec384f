// [TOOL_CALLS][{"name": "NAME", "arguments": {...}, "id": "..."}, ...]
// [TOOL_CALLS]NAME[ARGS]{...}, with [CALL_ID]ID before [ARGS] in some versions

#include "chat/tools/formats/call_parser.h"

namespace coterie {
namespace {

constexpr std::string_view kOpen = "[TOOL_CALLS]";
constexpr std::string_view kArguments = "[ARGS]";
constexpr std::string_view kCallId = "[CALL_ID]";
constexpr std::string_view kMarkers[] = {kOpen};

class MistralParser final : public CallParser {
  public:
    using CallParser::CallParser;

  private:
    enum class State { Content, Start, Object, NextObject, Name, Arguments };

    bool step() override {
        switch (state_) {
            case State::Content:
                if (!find_marker(kMarkers)) return false;
                state_ = State::Start;
                return true;
            case State::Start:
                return step_start();
            case State::Object:
                return step_list();
            case State::NextObject:
                return step_next_object();
            case State::Name:
                return step_name();
            case State::Arguments:
                if (!step_json_arguments()) return false;
                raw_.clear();
                state_ = State::Content;
                return true;
        }
        return false;
    }

    void reset() override { state_ = State::Content; }
    bool is_behind_call() const override { return state_ == State::NextObject; }

    bool step_start() {
        if (match("[") == Match::Partly) return false;
        if (match("[") == Match::Whole) {
            take("[");
            begin_object();
            state_ = State::Object;
        } else {
            state_ = State::Name;
        }
        return true;
    }

    /// A list's calls are short and come whole: their ids stand behind the arguments.
    bool step_list() {
        const Match object = step_object();
        if (object == Match::Whole) state_ = State::NextObject;
        return object != Match::Partly;
    }

    bool step_next_object() {
        if (match(",") == Match::Partly) return false;
        raw_.clear();
        if (match(",") == Match::Whole) {
            take(",");
            begin_object();
            state_ = State::Object;
            return true;
        }
        if (match("]") == Match::Whole) skip("]");
        raw_.clear();
        state_ = State::Content;
        return true;
    }

    bool step_name() {
        const std::size_t brace = pending_.find('{');
        if (brace == std::string::npos) return false;
        std::string_view head = std::string_view(pending_).substr(0, brace);
        const std::size_t arguments = head.find(kArguments);
        head = head.substr(0, arguments);
        const std::size_t id = head.find(kCallId);
        const std::string name(trimmed(head.substr(0, id)));
        const std::string call_id(id == std::string_view::npos ? std::string_view()
                                                               : trimmed(head.substr(id + kCallId.size())));
        if (!writer_.find(name)) {
            give_up();
            return true;
        }
        take_bytes(brace);
        begin_call(name, call_id);
        state_ = State::Arguments;
        return true;
    }

    State state_ = State::Content;
};

}  // namespace

std::unique_ptr<CallParser> make_mistral_parser(EventWriter& writer) {
    return std::make_unique<MistralParser>(writer);
}

}  // namespace coterie
