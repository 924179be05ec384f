#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <sys/mman.h>
#include <unistd.h>

/// For tests: memory between two pages that may not be touched, so that reading outside is a crash and not
/// luck.
namespace coterie {

/// Which end of the bytes touches its guard page.
enum class Guard { Before, After };

class GuardedBytes {
  public:
    GuardedBytes(std::size_t size, Guard guard) : size_(size) {
        const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const std::size_t inside = (size + page - 1) / page * page;
        mapped_ = inside + 2 * page;
        void* memory = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        start_ = static_cast<std::byte*>(memory);
        if (mprotect(start_ + page, inside, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
        data_ = start_ + page + (guard == Guard::After ? inside - size : 0);
    }
    GuardedBytes(const GuardedBytes&) = delete;
    GuardedBytes& operator=(const GuardedBytes&) = delete;
    ~GuardedBytes() { munmap(start_, mapped_); }

    std::span<std::byte> span() { return {data_, size_}; }
    std::byte* data() { return data_; }

  private:
    std::size_t size_;
    std::size_t mapped_;
    std::byte* start_;
    std::byte* data_;
};

}  // namespace coterie
