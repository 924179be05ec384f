#pragma once

#include "server/chat/chat_request.h"

namespace coterie::server {

/// Reads the chat of a request in the shape of OpenAI's Responses API: `input` as a text or items,
/// `instructions`, `tools`, `tool_choice`, `text.format`, `reasoning.effort`. Nothing is kept between
/// requests, so `previous_response_id` is refused. Throws ApiError naming the place.
ChatInput read_responses_chat(const Fields& fields);

}  // namespace coterie::server
