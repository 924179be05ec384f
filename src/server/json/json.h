#pragma once

#include <nlohmann/json_fwd.hpp>

namespace coterie::server {

/// Keeps the order of keys: messages reach the template as the client wrote them.
using Json = nlohmann::ordered_json;

}  // namespace coterie::server
