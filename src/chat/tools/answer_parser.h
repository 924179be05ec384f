#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/reasoning.h"
#include "chat/tools/tool_definition.h"
#include "chat/tools/tool_format.h"

namespace coterie {

/// One step of an answer, in the order of OpenAI's stream.
struct AnswerEvent {
    enum class Kind {
        Reasoning,  ///< `text` more of the thoughts
        Content,    ///< `text` more of the content
        CallBegin,  ///< call number `call`, with `name` and `id`
        Arguments,  ///< `text` more of the arguments of call number `call`: together one JSON object
        CallEnd,
    };
    Kind kind;
    std::string text = {};
    std::size_t call = 0;  ///< from 0, in the order of their beginnings
    std::string name = {};
    std::string id = {};
    bool operator==(const AnswerEvent&) const = default;
};

struct AnswerParserOptions {
    ToolFormat format = ToolFormat::None;
    std::vector<ToolDefinition> tools = {};  ///< empty: no calls are looked for
    ReasoningTags tags = {};                 ///< their texts must outlive the parser; harmony needs none
    AnswerStart start = AnswerStart::Content;
    std::uint64_t id_seed = 0;  ///< ids of calls follow from it; a server takes a random one
};

/// Takes an answer apart while it streams. What comes out does not depend on how the text was cut, but for
/// the cuts of deltas. Nothing is ever lost and nothing throws: what looks like a call and then is none, or
/// calls a function that is not in `tools`, becomes content as the model wrote it. Where a call has begun
/// and then breaks off, its arguments stay as far as they came, and no CallEnd follows. (White space around
/// calls and thoughts is dropped, and so are closing marks without a call.)
///
/// The text must hold the format's markers: decode with ControlTokens::Hide, under which the tokenizer shows
/// the control tokens that are structure of answers.
class AnswerParser {
  public:
    virtual ~AnswerParser() = default;
    /// Appends to `events`.
    virtual void feed(std::string_view text, std::vector<AnswerEvent>& events) = 0;
    /// The end of the answer.
    virtual void finish(std::vector<AnswerEvent>& events) = 0;
};

std::unique_ptr<AnswerParser> make_answer_parser(AnswerParserOptions options);

/// A whole answer.
struct ParsedCall {
    std::string name;
    std::string id;
    std::string arguments;
    bool complete = false;
};
struct ParsedAnswer {
    std::string reasoning;
    std::string content;
    std::vector<ParsedCall> calls;
};
ParsedAnswer collect(std::span<const AnswerEvent> events);

}  // namespace coterie
