// V3.1: calls-begin call-begin NAME separator {...} call-end ... calls-end
// V3, R1: calls-begin call-begin function separator NAME
//         ```json
//         {...}
//         ``` call-end ... calls-end

#include "chat/tools/formats/call_parser.h"

namespace coterie {
namespace {

// Between full-width bars (U+FF5C), words joined by lower-eighth blocks (U+2581).
constexpr std::string_view kCallsBegin = "<\uFF5Ctool\u2581calls\u2581begin\uFF5C>";
constexpr std::string_view kCallsEnd = "<\uFF5Ctool\u2581calls\u2581end\uFF5C>";
constexpr std::string_view kCallBegin = "<\uFF5Ctool\u2581call\u2581begin\uFF5C>";
constexpr std::string_view kCallEnd = "<\uFF5Ctool\u2581call\u2581end\uFF5C>";
constexpr std::string_view kSeparator = "<\uFF5Ctool\u2581sep\uFF5C>";
constexpr std::string_view kFence = "```json";
constexpr std::string_view kFenceEnd = "```";
constexpr std::string_view kMarkers[] = {kCallsBegin, kCallBegin};
constexpr std::string_view kCallEnds[] = {kFenceEnd, kCallEnd, kCallsEnd};

class DeepSeekParser final : public CallParser {
  public:
    DeepSeekParser(EventWriter& writer, bool fenced) : CallParser(writer), fenced_(fenced) {}

  private:
    enum class State { Content, Call, Name, Arguments, Tail };

    bool step() override {
        switch (state_) {
            case State::Content: {
                const auto marker = find_marker(kMarkers);
                if (marker) state_ = *marker == 0 ? State::Call : State::Name;
                return marker.has_value();
            }
            case State::Call:
                return step_call();
            case State::Name:
                return step_name();
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

    bool step_call() {
        const Match begin = require(kCallBegin);
        if (begin == Match::Whole) state_ = State::Name;
        return begin != Match::Partly;
    }

    /// The name and all up to the arguments' brace.
    bool step_name() {
        const std::size_t separator = pending_.find(kSeparator);
        const std::size_t brace = pending_.find('{', separator == std::string::npos ? 0 : separator);
        if (brace == std::string::npos && pending_.find(kCallEnd) == std::string::npos) return false;
        if (brace == std::string::npos || separator == std::string::npos) {
            give_up();
            return true;
        }
        const std::string_view text = pending_;
        const std::string_view behind =
            text.substr(separator + kSeparator.size(), brace - separator - kSeparator.size());
        const std::size_t fence = behind.find(kFence);
        const bool is_whole = !fenced_ ? trimmed(behind).empty() : fence != std::string_view::npos;
        const std::string name(
            trimmed(fenced_ ? behind.substr(0, std::min(fence, behind.size())) : text.substr(0, separator)));
        if (!is_whole || !writer_.find(name)) {
            give_up();
            return true;
        }
        take_bytes(brace);
        begin_call(name);
        state_ = State::Arguments;
        return true;
    }

    bool step_tail() {
        if (match(kCallBegin) == Match::Whole) {
            raw_.clear();
            take(kCallBegin);
            state_ = State::Name;
            return true;
        }
        const Match end = skip_one(kCallEnds);
        if (end == Match::Whole) return true;
        if (end == Match::Partly || match(kCallBegin) == Match::Partly) return false;
        raw_.clear();
        state_ = State::Content;
        return true;
    }

    bool fenced_;
    State state_ = State::Content;
};

}  // namespace

std::unique_ptr<CallParser> make_deepseek_parser(EventWriter& writer, bool fenced) {
    return std::make_unique<DeepSeekParser>(writer, fenced);
}

}  // namespace coterie
