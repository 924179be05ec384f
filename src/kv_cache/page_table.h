#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv_cache/block_pool.h"
#include "kv_cache/state_layout.h"

namespace coterie {

/// Copies the first `rows` rows of every part from one page to another.
void copy_rows(const StateLayout& layout, PageMemory& memory, const std::byte* from, std::byte* to,
               std::int64_t rows);

/// The pages of one sequence in order of position, each with a reference of its own in the pool, and for
/// every head the addresses that attention reads: `[heads][capacity]`, one array a head.
class PageTable {
  public:
    PageTable(const StateLayout& layout, BlockPool& pool) : layout_(&layout), pool_(&pool) {}
    ~PageTable() { drop_to(0); }
    PageTable(PageTable&& other) noexcept;
    PageTable& operator=(PageTable&& other) noexcept;

    std::int64_t size() const { return static_cast<std::int64_t>(pages_.size()); }
    std::byte* data(std::int64_t page) const { return pool_->data(id(page)); }
    PageMemory& memory() const { return pool_->memory(); }
    PageId id(std::int64_t page) const { return pages_[static_cast<std::size_t>(page)]; }
    bool shared(std::int64_t page) const { return pool_->references(id(page)) > 1; }

    /// [size()] addresses of one head's first row, valid until the table grows.
    const std::byte* const* addresses(std::int64_t head) const {
        return addresses_.data() + head * capacity_;
    }

    /// Adds `count` fresh pages. Requires that many free pages in the pool.
    void grow(std::int64_t count);
    /// Replaces a page by a private copy of its first `rows` rows. Requires a free page in the pool.
    void make_private(std::int64_t page, std::int64_t rows);
    /// Gives back all pages but the first `count`.
    void drop_to(std::int64_t count);
    /// Another table of the first `count` pages.
    PageTable share(std::int64_t count) const;

    void check_integrity() const;

  private:
    void reserve(std::int64_t capacity);
    void write_addresses(std::int64_t page);

    const StateLayout* layout_;
    BlockPool* pool_;
    std::vector<PageId> pages_;
    std::vector<const std::byte*> addresses_;
    std::int64_t capacity_ = 0;
};

}  // namespace coterie
