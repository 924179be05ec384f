#pragma once

#include <span>
#include <string>
#include <string_view>

#include "chat/tools/formats/call_parser.h"

namespace coterie {

/// What stands around the parts of a call whose arguments are plain text.
struct PlainMarks {
    /// Open a call. The first one stands before `function`, the second, where there is one, in its place.
    std::span<const std::string_view> open;
    std::string_view function;   ///< before the name; may be empty
    std::string_view argument;   ///< before an argument's key
    std::string_view value_end;  ///< may come twice
    std::string_view call_end;
    std::span<const std::string_view> tail;  ///< may follow a call in any order and number
};

/// Takes calls apart that are written part by part: a name, then keys and values as plain text. The way from
/// part to part is here; how a part is written, the format says.
class PlainParser : public CallParser {
  public:
    PlainParser(EventWriter& writer, const PlainMarks& marks) : CallParser(writer), marks_(marks) {}

  protected:
    /// A part at the front of a text: what it says, and the bytes of it up to the next part's first one.
    /// `match` is Partly where more text must come first, and No where no call is written like this.
    struct Part {
        Match match = Match::Partly;
        std::string text = {};
        std::size_t bytes = 0;
    };
    virtual Part read_name(std::string_view pending) const = 0;
    virtual Part read_key(std::string_view pending) const = 0;
    virtual Part read_value(std::string_view pending) const = 0;

  private:
    enum class State { Content, Function, Name, Parts, Key, Value, Tail };

    bool step() override;
    void reset() override { state_ = State::Content; }
    bool is_behind_call() const override { return state_ == State::Tail; }

    bool step_content();
    bool step_function();
    bool step_name();
    bool step_parts();
    bool step_key();
    bool step_value();
    bool step_tail();
    /// Takes the part if it is there, gives the call up if there is none.
    bool accept(const Part& part, State next);

    PlainMarks marks_;
    State state_ = State::Content;
    const ToolDefinition* tool_ = nullptr;
    std::string key_;
    bool is_first_ = true;
};

}  // namespace coterie
