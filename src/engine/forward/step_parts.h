#pragma once

#include <cstdint>
#include <vector>

#include "engine/forward/step.h"

namespace coterie::engine {

/// A step cut into parts of so many tokens at most, each of which is a step of its own: rows count from the
/// part's first. Sequences are cut only where a page ends, so that the parts of a prompt fall on the grid of
/// its positions (docs/adr/0008-prompt-cells.md).
class StepParts {
  public:
    /// `most_tokens` is at least kPageTokens, or all that the step has. The step's memory must outlive the
    /// parts.
    void split(const Step& step, std::int64_t most_tokens);

    int size() const { return static_cast<int>(parts_.size()); }
    /// Valid until the next call of `split`. Its logits are the caller's business.
    Step operator[](int i) const;
    /// The part's first row in the step.
    std::int64_t first_row(int i) const { return parts_[static_cast<std::size_t>(i)].first_row; }

  private:
    struct Part {
        std::int64_t first_row = 0;
        std::int64_t rows = 0;
        std::size_t first_slice = 0;
        std::size_t slices = 0;
        std::size_t first_logits = 0;
        std::size_t logits = 0;
    };
    void add_slices(const Step& step, std::int64_t most_tokens);
    void add_logits(const Step& step);

    const Step* step_ = nullptr;
    std::vector<Part> parts_;
    std::vector<StepSlice> slices_;
    std::vector<std::int64_t> logits_rows_;
};

}  // namespace coterie::engine
