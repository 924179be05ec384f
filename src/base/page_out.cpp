#include "base/page_out.h"

#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

namespace coterie {

void page_out(std::span<const std::byte> bytes) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
    const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size()) / page * page;
    if (begin >= end) return;
    // A wish: where the system does not know it, its own choice of pages has to do.
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_PAGEOUT);
}

}  // namespace coterie
