#include "sampling/samplers/samplers.h"

namespace coterie {

void TopP::apply(Candidates& candidates, Random&) {
    candidates.softmax();
    candidates.keep_mass(p_, ranks_before);
}

}  // namespace coterie
