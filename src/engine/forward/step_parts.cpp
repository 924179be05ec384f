#include "engine/forward/step_parts.h"

#include <algorithm>

#include "base/error.h"

namespace coterie::engine {
namespace {

/// Of a slice from `done` on, as many tokens as there is room for and as end on a page's end.
std::int64_t tokens_to_take(const StepSlice& slice, std::int64_t done, std::int64_t room) {
    const std::int64_t left = slice.count - done;
    if (left <= room) return left;
    return std::max<std::int64_t>(room - (slice.position + done + room) % kPageTokens, 0);
}

}  // namespace

void StepParts::split(const Step& step, std::int64_t most_tokens) {
    COTERIE_CHECK(most_tokens >= kPageTokens || most_tokens >= static_cast<std::int64_t>(step.tokens.size()));
    step_ = &step;
    parts_.assign(1, {});
    slices_.clear();
    add_slices(step, most_tokens);
    add_logits(step);
}

void StepParts::add_slices(const Step& step, std::int64_t most_tokens) {
    for (const StepSlice& slice : step.slices) {
        for (std::int64_t done = 0; done < slice.count;) {
            const std::int64_t count = tokens_to_take(slice, done, most_tokens - parts_.back().rows);
            if (count == 0) {
                const std::int64_t next = parts_.back().first_row + parts_.back().rows;
                parts_.push_back({.first_row = next, .first_slice = slices_.size()});
                continue;
            }
            Part& part = parts_.back();
            slices_.push_back({slice.state, slice.position + done, part.rows, count});
            part.rows += count;
            ++part.slices;
            done += count;
        }
    }
}

void StepParts::add_logits(const Step& step) {
    logits_rows_.assign(step.logits_rows.begin(), step.logits_rows.end());
    std::size_t next = 0;
    for (Part& part : parts_) {
        part.first_logits = next;
        for (; next < logits_rows_.size() && logits_rows_[next] < part.first_row + part.rows; ++next)
            logits_rows_[next] -= part.first_row;
        part.logits = next - part.first_logits;
    }
}

Step StepParts::operator[](int i) const {
    const Part& part = parts_[static_cast<std::size_t>(i)];
    return {.tokens = step_->tokens.subspan(static_cast<std::size_t>(part.first_row),
                                            static_cast<std::size_t>(part.rows)),
            .slices = std::span(slices_).subspan(part.first_slice, part.slices),
            .logits_rows = std::span(logits_rows_).subspan(part.first_logits, part.logits),
            .logits = step_->logits,
            .observer = step_->observer};
}

}  // namespace coterie::engine
