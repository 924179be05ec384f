#include "models/layer_ops.h"

#include <algorithm>
#include <fmt/format.h>

namespace coterie::models {

Value Workspace::declare(std::string_view name, std::int64_t width) {
    const std::string key = fmt::format("{}:{}", name, width);
    const auto found = std::find(names_.begin(), names_.end(), key);
    const auto index = static_cast<int>(found - names_.begin());
    if (found == names_.end()) {
        names_.push_back(key);
        widths_.push_back(width);
    }
    return {index, width};
}

}  // namespace coterie::models
