#pragma once

#include <string>

#include "server/json/fields.h"

/// What a chat's request says, read and checked; no model is needed for it.
namespace coterie::server {

/// Of a request, whatever its dialect.
inline constexpr std::size_t kMostMessages = 16'384;
inline constexpr std::size_t kMostTools = 512;

/// Whether and which tools an answer may call.
struct ToolWish {
    enum class Choice { None, Auto, Required, Named };
    Choice choice = Choice::Auto;
    std::string name = {};  ///< with Named
    bool parallel = true;
};

/// What an answer must look like.
struct FormatWish {
    enum class Kind { Free, JsonObject, JsonSchema, Gbnf };
    Kind kind = Kind::Free;
    std::string text = {};  ///< the schema, or the grammar
    std::string path = {};  ///< of the field it came from, for errors
};

/// A chat as every chat endpoint understands it: OpenAI's shape. Other shapes are translated into it.
struct ChatInput {
    std::string messages;  ///< JSON array
    std::string tools;     ///< JSON array; empty: none
    ToolWish tool_wish;
    FormatWish format;
    std::string variables;  ///< JSON object for the template, besides what the chat says; empty: none
};

/// Reads `messages`, `tools`, `tool_choice`, `parallel_tool_calls`, `response_format`, `grammar`,
/// `json_schema`, `chat_template_kwargs`, `reasoning_effort` as OpenAI's and llama-server's chat routes have
/// them.
ChatInput read_chat(const Fields& fields);

}  // namespace coterie::server
