#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/aligned_buffer.h"
#include "kv_cache/block_pool.h"
#include "kv_cache/page_table.h"
#include "kv_cache/snapshots.h"
#include "kv_cache/state_layout.h"

namespace coterie {

class ByteSink;
class ByteSource;

struct SequenceOptions {
    std::int64_t snapshot_limit = 8;  ///< each costs StateLayout::fixed_bytes(); 0 keeps none
};

/// Everything a model remembers of one token sequence: KV pages, latent rows and recurrent states, behind one
/// type that is grown, forked, rolled back, saved and restored exactly.
///
/// A step of n tokens: `prepare(n)`; for each layer write rows [length(), length() + n) and update the
/// recurrent state; `advance(n)`. Between `prepare` and `advance` nothing allocates and all addresses stay;
/// `prepare`, `truncate` and assignment may change them.
///
/// Forks share pages. A page that others hold is never written: `prepare` replaces a shared last page by a
/// copy. The layout and the pool must outlive the sequence. One thread changes sequences of one pool.
class SequenceState {
  public:
    SequenceState(const StateLayout& layout, BlockPool& pool, const SequenceOptions& options = {});

    /// Positions that are remembered: [0, length()).
    std::int64_t length() const { return length_; }
    const StateLayout& layout() const { return *layout_; }

    /// Pages of the pool that `prepare(n)` would take.
    std::int64_t pages_missing(std::int64_t n) const;
    /// Makes positions [length(), length() + n) writable. False, with nothing changed, when the pool has too
    /// few pages.
    [[nodiscard]] bool prepare(std::int64_t n);
    /// The step has written all layers' rows of the next n prepared positions.
    void advance(std::int64_t n);
    /// Takes back a step that ended between `prepare` and `advance`. Recurrent layers, which it may have
    /// changed, go back to the latest snapshot, and with them the length, which is returned.
    std::int64_t abandon_step();

    /// What attention reads: per page the address of the head's first row, [pages of the prepared positions].
    /// Rows of one head lie `layout().keys(layer).row_bytes` apart. A latent layer's values are the start of
    /// its keys.
    const std::byte* const* key_pages(std::int64_t layer, std::int64_t head = 0) const {
        return pages_.addresses(layout_->keys(layer).first_head + head);
    }
    const std::byte* const* value_pages(std::int64_t layer, std::int64_t head = 0) const {
        return pages_.addresses(layout_->values(layer).first_head + head);
    }

    /// The pages of the prepared positions, by their numbers in the pool.
    const PageTable& pages() const { return pages_; }

    /// A prepared position's row: all kv heads, `layout().keys(layer).head_bytes` apart.
    std::byte* key_row(std::int64_t layer, std::int64_t position) {
        return row(layout_->keys(layer), position);
    }
    std::byte* value_row(std::int64_t layer, std::int64_t position) {
        return row(layout_->values(layer), position);
    }

    /// The state of a recurrent layer after the last token; zeros at length 0.
    std::span<float> recurrent(std::int64_t layer) {
        return {recurrent_.data() + layout_->recurrent_offset(layer), layout_->recurrent_size(layer)};
    }

    /// Keeps the recurrent state at the current length, so that `truncate` can come back to it. Costs nothing
    /// for a model without recurrent layers. Not between the first write of a step and its `advance`.
    void snapshot();
    const SnapshotList& snapshots() const { return snapshots_; }

    /// The largest length <= n that `truncate(n)` can roll back to: n itself without recurrent layers; with
    /// them the current length, a snapshot's position or 0.
    std::int64_t restorable(std::int64_t n) const;
    /// Rolls back to `restorable(n)` and returns it; the caller evaluates the tokens from there to n again.
    /// Pages and snapshots beyond it go. Requires 0 <= n <= length().
    std::int64_t truncate(std::int64_t n);

    /// Another sequence of the same tokens. Pages and snapshots are shared, the recurrent state is copied.
    SequenceState fork() const;

    /// Writes the whole state, byte-exact. `fingerprint` stands for the model and for all that shapes its
    /// state.
    void save(ByteSink& sink, std::uint64_t fingerprint) const;
    /// Reads what `save` wrote. Nothing when the pool has too few pages for it. Throws InvalidFile, in one
    /// line that names the source, for what is foreign, cut or damaged; sizes are checked before anything is
    /// allocated.
    static std::optional<SequenceState> restore(const StateLayout& layout, BlockPool& pool,
                                                ByteSource& source, std::uint64_t fingerprint,
                                                const SequenceOptions& options = {});

    /// Throws Internal unless pages, addresses and snapshots agree with the length.
    void check_integrity() const;

  private:
    std::byte* row(const PagePart& part, std::int64_t position) {
        return pages_.data(position / kPageTokens) + part.offset +
               static_cast<std::uint64_t>(position % kPageTokens) * part.row_bytes;
    }
    bool copies_last_page(std::int64_t n) const;
    void restore_recurrent(std::int64_t position);
    void shorten(std::int64_t length);
    std::int64_t pages_needed(std::int64_t tokens) const {
        return layout_->page_bytes() ? pages_for(tokens) : 0;
    }

    const StateLayout* layout_;
    BlockPool* pool_;
    std::int64_t length_ = 0;
    std::int64_t prepared_ = 0;  ///< positions below it are held, from length_ on they are writable
    PageTable pages_;
    AlignedBuffer<float> recurrent_;
    SnapshotList snapshots_;
};

}  // namespace coterie
