#pragma once

#include "sampling/candidates.h"
#include "sampling/random.h"

namespace coterie {

/// One stage of a chain. All of a sampler's memory comes with the first tokens; later ones allocate nothing.
class Sampler {
  public:
    virtual ~Sampler() = default;

    /// Changes what may be drawn; at least one candidate stays.
    virtual void apply(Candidates& candidates, Random& random) = 0;
    /// A token was drawn with this probability among the last candidates.
    virtual void observe_draw(double probability) { static_cast<void>(probability); }
    /// The sequence grew by a token, from the prompt or drawn.
    virtual void accept(std::int32_t token) { static_cast<void>(token); }
};

}  // namespace coterie
