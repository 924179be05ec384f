#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chat/tools/answer_parser.h"
#include "server/json/json.h"
#include "server/service/generation.h"
#include "server/service/service.h"

namespace coterie::server {

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

/// A chat, ready for the scheduler, and what takes its answers apart.
struct PreparedChat {
    std::string text;  ///< the rendered prompt
    std::vector<TokenId> tokens;
    AnswerParserOptions parser;
    std::function<std::unique_ptr<scheduler::TokenConstraint>()> constraint;  ///< empty: none
    std::string begun;  ///< what the client wrote of the answer: it goes on from there
};

/// Renders and tokenises a chat. Throws ApiError for one that the template refuses or cannot express, tools
/// that it does not take, and grammars that cannot be expressed.
PreparedChat prepare_chat(const ChatInput& input, Service& service);

/// Reads `messages`, `tools`, `tool_choice`, `parallel_tool_calls`, `response_format`, `grammar`,
/// `json_schema`, `chat_template_kwargs`, `reasoning_effort` as OpenAI's and llama-server's chat routes have
/// them.
ChatInput read_chat(const Fields& fields);

/// Hands in as many requests as answers are wanted.
scheduler::Answers submit_chat(const PreparedChat& chat, const Generation& generation,
                               const Service& service);

/// A parser for each answer.
std::vector<std::unique_ptr<AnswerParser>> make_parsers(const PreparedChat& chat, int answers);

}  // namespace coterie::server
