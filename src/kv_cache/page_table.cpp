#include "kv_cache/page_table.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace coterie {

void copy_rows(const StateLayout& layout, PageMemory& memory, const std::byte* from, std::byte* to,
               std::int64_t rows) {
    for (const PagePart& part : layout.parts()) {
        memory.copy(to + part.offset, from + part.offset, part.row_bytes * static_cast<std::uint64_t>(rows));
    }
}

PageTable::PageTable(PageTable&& other) noexcept
    : layout_(other.layout_),
      pool_(other.pool_),
      pages_(std::exchange(other.pages_, {})),
      addresses_(std::exchange(other.addresses_, {})),
      capacity_(std::exchange(other.capacity_, 0)) {}

PageTable& PageTable::operator=(PageTable&& other) noexcept {
    std::swap(layout_, other.layout_);
    std::swap(pool_, other.pool_);
    pages_.swap(other.pages_);
    addresses_.swap(other.addresses_);
    std::swap(capacity_, other.capacity_);
    return *this;
}

void PageTable::grow(std::int64_t count) {
    reserve(size() + count);
    for (std::int64_t i = 0; i < count; ++i) {
        pages_.push_back(pool_->acquire().value());
        write_addresses(size() - 1);
    }
}

void PageTable::make_private(std::int64_t page, std::int64_t rows) {
    const PageId copy = pool_->acquire().value();
    copy_rows(*layout_, memory(), data(page), pool_->data(copy), rows);
    pool_->release(std::exchange(pages_[static_cast<std::size_t>(page)], copy));
    write_addresses(page);
}

void PageTable::drop_to(std::int64_t count) {
    while (size() > count) {
        pool_->release(pages_.back());
        pages_.pop_back();
    }
}

PageTable PageTable::share(std::int64_t count) const {
    PageTable other(*layout_, *pool_);
    other.reserve(count);
    for (std::int64_t page = 0; page < count; ++page) {
        pool_->add_reference(id(page));
        other.pages_.push_back(id(page));
        other.write_addresses(page);
    }
    return other;
}

void PageTable::reserve(std::int64_t capacity) {
    if (capacity <= capacity_) return;
    const std::int64_t grown = std::max(capacity, 2 * capacity_);
    pages_.reserve(static_cast<std::size_t>(grown));
    std::vector<const std::byte*> addresses(static_cast<std::size_t>(layout_->heads() * grown));
    for (std::int64_t head = 0; head < layout_->heads(); ++head) {
        std::copy_n(addresses_.data() + head * capacity_, size(), addresses.data() + head * grown);
    }
    addresses_.swap(addresses);
    capacity_ = grown;
}

void PageTable::write_addresses(std::int64_t page) {
    const std::byte* base = data(page);
    for (const PagePart& part : layout_->parts()) {
        for (std::int64_t head = 0; head < part.heads; ++head) {
            addresses_[static_cast<std::size_t>((part.first_head + head) * capacity_ + page)] =
                base + part.offset + static_cast<std::uint64_t>(head) * part.head_bytes;
        }
    }
}

void PageTable::check_integrity() const {
    COTERIE_CHECK(size() <= capacity_);
    for (std::int64_t page = 0; page < size(); ++page) {
        COTERIE_CHECK(pool_->references(id(page)) > 0);
        for (const PagePart& part : layout_->parts()) {
            for (std::int64_t head = 0; head < part.heads; ++head) {
                COTERIE_CHECK(addresses(part.first_head + head)[page] ==
                              data(page) + part.offset + static_cast<std::uint64_t>(head) * part.head_bytes);
            }
        }
    }
}

}  // namespace coterie
