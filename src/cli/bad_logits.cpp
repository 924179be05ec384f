#include "cli/bad_logits.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace coterie::cli {

bool all_finite(std::span<const float> logits) {
    return std::all_of(logits.begin(), logits.end(), [](float value) { return std::isfinite(value); });
}

void refuse_bad_logits(const std::string& model) {
    fail(ErrorCode::InvalidFile,
         "{}: the logits hold NaN or infinity; 'coterie inspect --check' looks through the weights", model);
}

}  // namespace coterie::cli
