#pragma once

#include <span>
#include <string>

namespace coterie::cli {

bool all_finite(std::span<const float> logits);

/// For logits that are not: throws InvalidFile that names the model and the way out.
[[noreturn]] void refuse_bad_logits(const std::string& model);

}  // namespace coterie::cli
