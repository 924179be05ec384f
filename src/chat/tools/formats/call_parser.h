#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "chat/tools/event_writer.h"
#include "chat/tools/json_object_scanner.h"

namespace coterie {

/// Takes calls out of an answer's content. What has come and is not yet understood stands in `pending_`;
/// `step` takes from its front as long as it can tell what it is.
///
/// What was read of a call that has not begun (no event said so) is kept in `raw_`: if it is no call after
/// all, it becomes content, and what follows is looked at as content again.
class CallParser {
  public:
    explicit CallParser(EventWriter& writer) : writer_(writer) {}
    virtual ~CallParser() = default;
    void feed(std::string_view text);
    virtual void finish();

  protected:
    enum class Match { No, Partly, Whole };

    /// False when nothing can be said without further text.
    virtual bool step() = 0;
    /// Back to content.
    virtual void reset() = 0;
    /// Behind a call, where only its closing marks may come: what stands there at the end is half of one.
    virtual bool is_behind_call() const = 0;

    /// Gives out content up to the first of the markers, which it moves to `raw_`; its number, if one is
    /// there.
    std::optional<std::size_t> find_marker(std::span<const std::string_view> markers);
    /// Whether `pending_` begins with the text, white space before it left aside.
    Match match(std::string_view text) const;
    /// Takes white space and the text, once `match` says Whole.
    void take(std::string_view text);
    /// Takes the text where `match` says Whole; gives up where it says No.
    Match require(std::string_view text);
    /// Takes the same, behind a call, where it is of no use to anyone.
    void skip(std::string_view text);
    /// Skips one of the closing marks, in whatever order and number they come.
    Match skip_one(std::span<const std::string_view> marks);
    /// Takes this many bytes as part of a call.
    std::string take_bytes(std::size_t count);
    /// What was read as a call is none.
    void give_up();

    void begin_call(std::string_view name, std::string_view id = {});
    void end_call();
    /// Streams a JSON object's bytes as the call's arguments. True when the call has ended or broken off.
    bool step_json_arguments();

    /// For a call that is one JSON object with name and arguments (json_call.h), and is given out when it is
    /// whole.
    void begin_object();
    /// Whole once the call has been written, No where it was none and has been given up.
    Match step_object();

    EventWriter& writer_;
    std::string pending_;
    std::string raw_;

  private:
    JsonObjectScanner scanner_;
    std::string json_;  ///< what the scanner has seen
    bool call_is_open_ = false;
};

std::unique_ptr<CallParser> make_hermes_parser(EventWriter& writer);
std::unique_ptr<CallParser> make_qwen_coder_parser(EventWriter& writer);
std::unique_ptr<CallParser> make_glm_parser(EventWriter& writer);
/// `fenced`: the older form with a type before the name and arguments in a fence.
std::unique_ptr<CallParser> make_deepseek_parser(EventWriter& writer, bool fenced);
/// Both of Mistral's forms, told apart by what follows the marker.
std::unique_ptr<CallParser> make_mistral_parser(EventWriter& writer);
/// Harmony has no thoughts in tags: this parser takes the whole answer.
std::unique_ptr<CallParser> make_harmony_parser(EventWriter& writer);

/// Which marker stands first in the text: its place and number. A marker that the text's end cuts off counts
/// with a number of `markers.size()`.
struct FoundMarker {
    std::size_t place;
    std::size_t number;
};
std::optional<FoundMarker> first_marker(std::string_view text, std::span<const std::string_view> markers);

std::string_view trimmed(std::string_view text);

}  // namespace coterie
