#pragma once

#include <span>
#include <string>

#include "chat/reasoning.h"
#include "chat/tools/tool_definition.h"
#include "chat/tools/tool_format.h"
#include "sampling/grammar/grammar.h"

namespace coterie {

enum class ToolChoice {
    Auto,      ///< free text, then calls or none: a call that has begun must be well-formed
    Required,  ///< calls and nothing else (after the thoughts)
};

struct ToolGrammarOptions {
    ToolChoice choice = ToolChoice::Auto;
    bool parallel = true;  ///< several calls in one answer; harmony has one
    ReasoningTags tags = {};
    AnswerStart start = AnswerStart::Content;
    bool thinks = true;  ///< thoughts may come before the calls
};

/// What an answer with calls may look like in a format; arguments follow each tool's schema. For a named
/// choice give that tool alone with Required; for `none` no grammar is needed. Throws InvalidArgument for
/// ToolFormat::None, for no tools, and, naming the tool, for a strict tool's schema that cannot be expressed
/// (grammar_from_json_schema); without `strict` what cannot be expressed is left out of it.
GrammarPointer tool_grammar(ToolFormat format, std::span<const ToolDefinition> tools,
                            const ToolGrammarOptions& options);

}  // namespace coterie
