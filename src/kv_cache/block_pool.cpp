#include "kv_cache/block_pool.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace coterie {
namespace {

std::unique_ptr<PageMemory> host_pages_for(std::uint64_t page_bytes, std::uint64_t budget_bytes) {
    if (page_bytes == 0) return nullptr;
    const std::uint64_t pages =
        std::min<std::uint64_t>(budget_bytes / page_bytes, std::numeric_limits<PageId>::max());
    if (pages == 0) {
        fail(ErrorCode::OutOfMemory,
             "a KV cache of {} bytes holds no page of {} bytes (64 tokens); give it more", budget_bytes,
             page_bytes);
    }
    return make_host_pages(pages * page_bytes);
}

}  // namespace

BlockPool::BlockPool(std::uint64_t page_bytes, std::uint64_t budget_bytes)
    : BlockPool(page_bytes, host_pages_for(page_bytes, budget_bytes)) {}

BlockPool::BlockPool(std::uint64_t page_bytes, std::unique_ptr<PageMemory> memory)
    : page_bytes_(page_bytes), memory_(std::move(memory)) {
    if (page_bytes == 0) return;
    const std::uint64_t pages = memory_->bytes() / page_bytes;
    COTERIE_CHECK(pages > 0 && pages <= std::numeric_limits<PageId>::max());
    base_ = memory_->base();
    references_.assign(pages, 0);
    free_.reserve(pages);  // so that release never allocates
}

std::optional<PageId> BlockPool::acquire() {
    PageId page = used_;
    if (!free_.empty()) {
        page = free_.back();
        free_.pop_back();
    } else if (used_ < references_.size()) {
        ++used_;
    } else {
        return std::nullopt;
    }
    references_[page] = 1;
    return page;
}

void BlockPool::add_reference(PageId page) {
    COTERIE_CHECK(page < used_ && references_[page] > 0);
    ++references_[page];
}

void BlockPool::release(PageId page) {
    COTERIE_CHECK(page < used_ && references_[page] > 0);
    if (--references_[page] == 0) free_.push_back(page);
}

void BlockPool::check_integrity() const {
    COTERIE_CHECK(used_ <= references_.size());
    std::vector<bool> is_free(references_.size(), false);
    for (const PageId page : free_) {
        COTERIE_CHECK(page < used_);
        COTERIE_CHECK(!is_free[page]);
        is_free[page] = true;
    }
    for (PageId page = 0; page < references_.size(); ++page) {
        COTERIE_CHECK((references_[page] == 0) == (is_free[page] || page >= used_));
    }
}

}  // namespace coterie
