#include "gguf/tensor.h"

#include <fmt/format.h>

namespace coterie::gguf {

std::string shape_text(const Tensor& tensor) {
    return fmt::format("{}", fmt::join(tensor.dims.begin(), tensor.dims.begin() + tensor.rank, " x "));
}

}  // namespace coterie::gguf
