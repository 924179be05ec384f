#include "sampling/samplers/samplers.h"

namespace coterie {

void TopK::apply(Candidates& candidates, Random&) {
    const auto k = static_cast<std::size_t>(k_);
    if (k >= candidates.size()) return;
    candidates.sort_prefix(k);
    candidates.keep_first(k);
}

}  // namespace coterie
