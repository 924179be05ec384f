#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kv_cache/page_memory.h"

namespace coterie {

using PageId = std::uint32_t;

/// A fixed budget of equal pages, counted by reference, that all sequences of a model share.
///
/// Addresses never change. A page is free (no references) or held; it returns to the pool with its last
/// reference. What a page held before stays in it. Used by one thread.
class BlockPool {
  public:
    /// As many pages as the budget holds. Throws OutOfMemory where that is none, or the range cannot be
    /// reserved. `page_bytes` 0 makes an empty pool, for models whose state does not grow.
    BlockPool(std::uint64_t page_bytes, std::uint64_t budget_bytes);
    /// As many pages as `memory` holds, at least one.
    BlockPool(std::uint64_t page_bytes, std::unique_ptr<PageMemory> memory);
    BlockPool(const BlockPool&) = delete;
    BlockPool& operator=(const BlockPool&) = delete;

    /// A page with one reference; nothing when all pages are held.
    [[nodiscard]] std::optional<PageId> acquire();
    void add_reference(PageId page);
    void release(PageId page);
    std::uint32_t references(PageId page) const { return references_[page]; }

    /// First byte of a page, in the memory's own addresses; 64-byte aligned where page_bytes is a multiple
    /// of 64.
    std::byte* data(PageId page) const { return base_ + page * page_bytes_; }
    PageMemory& memory() const { return *memory_; }

    std::uint64_t page_bytes() const { return page_bytes_; }
    std::uint64_t pages() const { return references_.size(); }
    std::uint64_t free_pages() const { return free_.size() + (references_.size() - used_); }

    /// Throws Internal unless every page is either free or referenced.
    void check_integrity() const;

  private:
    std::uint64_t page_bytes_;
    std::unique_ptr<PageMemory> memory_;  ///< null for an empty pool
    std::byte* base_ = nullptr;
    std::vector<std::uint32_t> references_;  ///< per page
    std::vector<PageId> free_;  ///< pages given back; the latest is taken first, it may still be in cache
    PageId used_ = 0;           ///< pages from here on were never handed out
};

}  // namespace coterie
