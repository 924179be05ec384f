#pragma once

#include "server/chat/chat_request.h"

namespace coterie::server {

/// Reads `response_format` (nested or flat schema), `json_schema` and `grammar`, and the fields in which
/// another dialect says the same as `response_format`: `own`, as far as the request has them. Throws ApiError
/// for a schema or a kind that is missing, a kind that is not known, and wishes that cannot both hold.
FormatWish read_format(const Fields& fields, const std::vector<std::optional<Fields>>& own = {});

}  // namespace coterie::server
