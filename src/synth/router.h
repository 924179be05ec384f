#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "quant/data_type.h"
#include "synth/routing_model.h"

namespace coterie::synth {

/// Weights of the reserved dimensions in the norm before the feed-forward network. Experts read them too, and
/// so see next to nothing of the reserved dimensions; a router's weights, which are always F32, undo the
/// factor.
inline constexpr float kReservedNormWeight = 0x1p-10f;

/// What the reserved dimensions hold, and the router weights that read it.
///
/// Every token of a topic t has the same values v_t in the reserved dimensions of its embedding: one random
/// stretch of blocks, repeated, which any quantised type stores without loss. Vectors u_t with u_t . v_t = 1
/// and u_t . v_s = 0 for other topics s turn wished logits into router weights: the row of an expert is
/// sum_t logit(t) u_t.
class ReservedPart {
  public:
    /// `type`: of the token embedding.
    ReservedPart(DataType type, std::int64_t topics, std::uint64_t seed);

    /// The bytes of v_t, the first of an embedding row.
    std::span<const std::byte> embedding_bytes(std::int64_t topic) const {
        return std::span(bytes_).subspan(static_cast<std::size_t>(topic) * topic_bytes_, topic_bytes_);
    }

    /// v_t as decoded.
    std::span<const float> embedding(std::int64_t topic) const;

    /// Writes the reserved weights of the router row of one expert.
    void write_router_row(const RoutingModel& model, std::int64_t popularity_rank,
                          std::span<float> row) const;

  private:
    void find_readers();

    std::int64_t topics_;
    std::size_t topic_bytes_;
    std::vector<std::byte> bytes_;  ///< [topic][bytes of the reserved dimensions]
    std::vector<float> values_;     ///< [topic][reserved dimension]
    std::vector<double> readers_;   ///< u_t: [topic][reserved dimension]
};

/// The popularity rank of every expert of a layer: another random order in each.
std::vector<std::int64_t> popularity_ranks(std::int64_t experts, SplitMix64& random);

}  // namespace coterie::synth
