#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert_cache/trace/trace_reader.h"

namespace coterie::expert_cache {

enum class PromptTokens { Skip, Include };

/// For one layer: by expert the tokens that use it, ascending.
using FutureUses = std::vector<std::vector<std::int64_t>>;

/// The tokens of a trace that a replay decodes one by one, numbered from 0. Tokens that were computed
/// together are a prompt's, whose experts an engine streams: they are left out, or decoded like the others.
class ReplayTokens {
  public:
    /// The trace must outlive it.
    ReplayTokens(const TraceReader& trace, PromptTokens prompts);

    const TraceHeader& header() const { return trace_.header(); }
    std::int64_t size() const { return static_cast<std::int64_t>(records_.size()); }
    /// As TraceReader::read.
    void read(std::int64_t token, std::span<std::int32_t> experts) const {
        trace_.read(records_[static_cast<std::size_t>(token)], experts);
    }
    /// [layers][used] as `read` fills it.
    std::vector<std::int32_t> buffer() const;

    /// [experts] uses in a layer, counted by its place in the header.
    std::span<const float> uses(std::size_t layer) const;
    /// [layers]
    std::vector<FutureUses> future() const;

  private:
    template <typename Visit>
    void visit_uses(Visit visit) const;

    const TraceReader& trace_;
    std::vector<std::int64_t> records_;
    std::vector<float> uses_;  ///< [layers][experts]
};

}  // namespace coterie::expert_cache
