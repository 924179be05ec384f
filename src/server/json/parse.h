#pragma once

#include <cstddef>
#include <string_view>

#include "server/json/json.h"

namespace coterie::server {

/// How big a request's JSON may be, beside its bytes.
struct JsonLimits {
    int depth = 128;
    std::size_t elements = 1 << 20;  ///< of all arrays and objects together
    std::size_t keys = 1024;         ///< of one object, whose keys are searched one by one
};

/// Reads a body that must be one JSON object in valid UTF-8. Throws ApiError 400 that names the place;
/// nothing is built before the limits have been checked.
Json parse_object(std::string_view body, const JsonLimits& limits = {});

/// Writes compactly; bytes that are not UTF-8 become U+FFFD.
std::string dump(const Json& value);

}  // namespace coterie::server
