#pragma once

#include "server/chat/chat_request.h"

namespace coterie::server {

/// Reads `response_format` (nested or flat schema), `json_schema` and `grammar`. Throws ApiError for a schema
/// that is missing or a kind that is not known.
FormatWish read_format(const Fields& fields);

}  // namespace coterie::server
