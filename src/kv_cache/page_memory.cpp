#include "kv_cache/page_memory.h"

#include <cstring>
#include <sys/mman.h>

#include "base/error.h"

namespace coterie {
namespace {

class HostPages final : public PageMemory {
  public:
    explicit HostPages(std::uint64_t bytes) : bytes_(bytes) {
        void* base =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED) {
            fail(ErrorCode::OutOfMemory,
                 "cannot reserve {} bytes for the KV cache; use a smaller context (-c)", bytes);
        }
        base_ = static_cast<std::byte*>(base);
    }
    ~HostPages() override { munmap(base_, bytes_); }
    HostPages(const HostPages&) = delete;
    HostPages& operator=(const HostPages&) = delete;

    std::byte* base() const override { return base_; }
    std::uint64_t bytes() const override { return bytes_; }
    void copy(std::byte* to, const std::byte* from, std::uint64_t bytes) override {
        std::memcpy(to, from, bytes);
    }
    void read(std::span<std::byte> to, const std::byte* from) override {
        std::memcpy(to.data(), from, to.size());
    }
    void write(std::byte* to, std::span<const std::byte> from) override {
        std::memcpy(to, from.data(), from.size());
    }

  private:
    std::uint64_t bytes_;
    std::byte* base_ = nullptr;
};

}  // namespace

std::unique_ptr<PageMemory> make_host_pages(std::uint64_t bytes) {
    return std::make_unique<HostPages>(bytes);
}

}  // namespace coterie
