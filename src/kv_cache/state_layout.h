#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "kernels/cpu/kernels.h"

namespace coterie {

/// Positions a page holds: the fixed grid of a sequence, on which attention also cuts its chunks.
inline constexpr std::int64_t kPageTokens = 64;

/// Pages that hold the first `tokens` positions.
constexpr std::int64_t pages_for(std::int64_t tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }

/// Attention with keys and values of its own per kv head.
struct KeyValueLayer {
    std::int64_t kv_heads;
    std::int64_t key_width;    ///< elements per key of one head
    std::int64_t value_width;  ///< elements per value of one head
    cpu::CacheType key_type;
    cpu::CacheType value_type;
};

/// Attention over one compressed row per position, which all heads share (MLA, absorbed form).
struct LatentLayer {
    std::int64_t width;        ///< elements of the row, which is the key
    std::int64_t value_width;  ///< the first elements of the row, which are the value
    cpu::CacheType type;
};

/// A state of fixed size that each token rewrites (gated delta net: convolution window and matrices).
struct RecurrentLayer {
    std::int64_t floats;
};

using LayerState = std::variant<KeyValueLayer, LatentLayer, RecurrentLayer>;

/// The rows of one kind (the keys or the values of a layer) within every page:
///
///     offset                              row_bytes apart
///     | row 0: head 0, head 1, ... | row 1: head 0, head 1, ... | ... | row 63 |
///
/// Position p is row p % 64. Each head starts at a whole cache block. Offsets are multiples of 64.
struct PagePart {
    std::uint64_t offset = 0;
    std::uint64_t row_bytes = 0;
    std::uint64_t head_bytes = 0;
    std::int64_t heads = 0;
    std::int64_t first_head = 0;  ///< number of head 0 when the heads of all parts are counted through
};

/// What one sequence of a model keeps, layer by layer, and where it lies. Immutable; all sizes are checked in
/// 64 bits.
class StateLayout {
  public:
    /// Throws InvalidArgument where a width is not positive, is no whole number of cache blocks, or sizes
    /// overflow.
    explicit StateLayout(std::vector<LayerState> layers);

    std::int64_t layers() const { return static_cast<std::int64_t>(layers_.size()); }
    const LayerState& layer(std::int64_t layer) const { return layers_[static_cast<std::size_t>(layer)]; }

    /// A page holds 64 positions of all layers; 0 where no layer grows with the sequence.
    std::uint64_t page_bytes() const { return page_bytes_; }
    /// What one more token adds.
    std::uint64_t token_bytes() const { return token_bytes_; }
    /// The recurrent state of a sequence, which is also the size of one snapshot.
    std::uint64_t fixed_bytes() const { return recurrent_floats_ * sizeof(float); }
    std::uint64_t recurrent_floats() const { return recurrent_floats_; }

    /// The keys or the values of an attention layer. A latent layer's values are its keys' part.
    const PagePart& keys(std::int64_t layer) const {
        return parts_[places_[static_cast<std::size_t>(layer)].keys];
    }
    const PagePart& values(std::int64_t layer) const {
        return parts_[places_[static_cast<std::size_t>(layer)].values];
    }
    bool attends(std::int64_t layer) const {
        return !std::holds_alternative<RecurrentLayer>(this->layer(layer));
    }

    /// Every part once, in the order in which they lie in a page.
    std::span<const PagePart> parts() const { return parts_; }
    /// Heads of all parts together.
    std::int64_t heads() const { return heads_; }

    /// First float of a recurrent layer within the state of `recurrent_floats()`, a multiple of 16.
    std::uint64_t recurrent_offset(std::int64_t layer) const {
        return places_[static_cast<std::size_t>(layer)].recurrent_offset;
    }
    std::uint64_t recurrent_size(std::int64_t layer) const {
        return static_cast<std::uint64_t>(std::get<RecurrentLayer>(this->layer(layer)).floats);
    }

    /// The same for two layouts exactly when they keep the same bytes in the same places.
    std::uint64_t fingerprint() const;

  private:
    struct Place {
        std::size_t keys = 0;
        std::size_t values = 0;
        std::uint64_t recurrent_offset = 0;
    };

    void place(std::int64_t index, const KeyValueLayer& layer);
    void place(std::int64_t index, const LatentLayer& layer);
    void place(std::int64_t index, const RecurrentLayer& layer);
    std::size_t add_part(std::int64_t index, std::int64_t heads, std::uint64_t head_bytes);

    std::vector<LayerState> layers_;
    std::vector<Place> places_;
    std::vector<PagePart> parts_;
    std::uint64_t page_bytes_ = 0;
    std::uint64_t token_bytes_ = 0;
    std::uint64_t recurrent_floats_ = 0;
    std::int64_t heads_ = 0;
};

}  // namespace coterie
