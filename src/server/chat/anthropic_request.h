#pragma once

#include "server/chat/chat_request.h"

namespace coterie::server {

/// Reads the chat of a request in the shape of Anthropic's Messages API: `system`, `messages` with blocks of
/// text, thoughts, tool uses and results, `tools`, `tool_choice`, `thinking`. Throws ApiError naming the
/// place.
ChatInput read_anthropic_chat(const Fields& fields);

}  // namespace coterie::server
