#pragma once

#include <cstdint>

namespace CLI {
class Validator;
}

namespace coterie::cli {

/// Of flags that help does not list. (The parser's own empty group would leave their names out of errors.)
inline constexpr const char* kHiddenGroup = "Hidden";

/// Accepts whole numbers from `lowest` to `highest`; what else is given is named in the error.
CLI::Validator whole_number(std::int64_t lowest, std::int64_t highest);

}  // namespace coterie::cli
