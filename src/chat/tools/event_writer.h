#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/split_mix.h"
#include "chat/tools/answer_parser.h"

namespace coterie {

/// Writes events for parsers of all formats. White space between content and a call belongs to neither: what
/// ends a piece of content waits until more content follows, and goes where a call follows.
class EventWriter {
  public:
    EventWriter(std::vector<ToolDefinition> tools, std::uint64_t id_seed);

    /// Where events go until the next call of this.
    void write_to(std::vector<AnswerEvent>& events) { events_ = &events; }

    void reasoning(std::string_view text);
    void content(std::string_view text);
    /// With no `id` of the model's own, one is made: 9 letters and digits, as Mistral's templates demand.
    void begin_call(std::string_view name, std::string_view id = {});
    void arguments(std::string_view text);
    void end_call();
    /// The answer's end.
    void finish();

    /// The tool of this name, or null.
    const ToolDefinition* find(std::string_view name) const;
    bool has_tools() const { return !tools_.empty(); }

  private:
    void add_text(AnswerEvent::Kind kind, std::string_view text);
    std::string new_id();

    std::vector<ToolDefinition> tools_;
    SplitMix64 random_;
    std::vector<AnswerEvent>* events_ = nullptr;
    std::string held_space_;
    std::size_t calls_ = 0;
};

}  // namespace coterie
