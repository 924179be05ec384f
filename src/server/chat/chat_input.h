#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chat/tools/answer_parser.h"
#include "server/chat/chat_request.h"
#include "server/service/generation.h"
#include "server/service/service.h"

namespace coterie::server {

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

/// Hands in as many requests as answers are wanted.
scheduler::Answers submit_chat(const PreparedChat& chat, const Generation& generation,
                               const Service& service);

/// A parser for each answer.
std::vector<std::unique_ptr<AnswerParser>> make_parsers(const PreparedChat& chat, int answers);

}  // namespace coterie::server
