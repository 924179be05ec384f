#pragma once

#include <cstdint>

namespace CLI {
class Validator;
}

namespace coterie::cli {

/// Accepts whole numbers from `lowest` to `highest`; what else is given is named in the error.
CLI::Validator whole_number(std::int64_t lowest, std::int64_t highest);

}  // namespace coterie::cli
