#pragma once

#include <string>
#include <string_view>

namespace coterie {

/// The texts between which a family of models writes its thoughts.
struct ReasoningTags {
    std::string_view open = "<think>";
    std::string_view close = "</think>";
};

/// The known pair whose closing text the template names; <think> and </think> for a template that names none.
ReasoningTags find_reasoning_tags(std::string_view template_source);

enum class AnswerStart {
    Content,    ///< the model opens its thoughts itself, if it has any
    Reasoning,  ///< the prompt ends with an open tag: the answer begins as thoughts
};

/// What a rendered prompt, generation prompt included, makes the answer start with.
AnswerStart answer_start(std::string_view prompt, const ReasoningTags& tags);

/// What one call adds to the two texts; either may be empty, which means that there is nothing to send.
struct ReasoningDelta {
    std::string reasoning;
    std::string content;
};

/// Splits a streamed answer into its thoughts and its content. The sums of the deltas do not depend on how
/// the answer was cut. Tags are read only at the answer's start and, for the closing one, in the thoughts: a
/// tag in the content is content. White space around the tags belongs to neither text; tags never show up in
/// either.
class ReasoningSplitter {
  public:
    ReasoningSplitter(const ReasoningTags& tags, AnswerStart start);

    ReasoningDelta feed(std::string_view text);

    /// The end of the answer: gives what was held back because it might have become a tag.
    ReasoningDelta finish();

  private:
    enum class State {
        BeforeAnswer,     // white space so far: a tag may follow
        BeforeReasoning,  // a tag is open, no thought yet
        InReasoning,
        BeforeContent,  // thoughts are closed, white space so far
        InContent,
    };
    enum class Match { No, Partly, Whole };

    bool step(ReasoningDelta& delta);
    bool step_before_answer();
    bool step_before_reasoning();
    bool step_in_reasoning(ReasoningDelta& delta);
    static Match match(std::string_view text, std::string_view tag);
    void enter(State state, std::size_t consumed);

    ReasoningTags tags_;
    State state_;
    std::string pending_;  // received and not yet given out
};

}  // namespace coterie
