#include "gguf/file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "gguf/descriptor.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace coterie::gguf {
namespace {

// Large enough that a system call costs nothing beside reading it, small enough for a smooth progress bar.
constexpr std::size_t kPrefaultBytes = std::size_t{32} << 20;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

[[noreturn]] void fail_system(const std::string& name, const char* action) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) {
        fail(ErrorCode::NotFound, "{}: no such file; check the path given with -m", name);
    }
    fail(ErrorCode::Io, "{}: cannot {}: {}", name, action, std::strerror(error));
}

std::size_t regular_file_size(int descriptor, const std::string& name) {
    struct stat status {};
    if (::fstat(descriptor, &status) != 0) fail_system(name, "look at the file");
    if (S_ISDIR(status.st_mode)) {
        fail(ErrorCode::InvalidArgument, "{}: is a directory; give the path of a .gguf file", name);
    }
    if (!S_ISREG(status.st_mode)) {
        fail(ErrorCode::InvalidArgument, "{}: is no regular file, so it cannot be mapped; copy it to a disk",
             name);
    }
    return static_cast<std::size_t>(status.st_size);
}

/// The whole pages that hold `bytes`, which is what madvise takes.
std::span<std::byte> pages_of(std::span<const std::byte> bytes) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()) & ~(page - 1);
    const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size());
    return {reinterpret_cast<std::byte*>(begin), end - begin};
}

/// Reads one byte of each page: what kernels before 5.14 leave us.
void touch(std::span<const std::byte> bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    for (std::size_t i = 0; i < bytes.size(); i += page) {
        static_cast<void>(*const_cast<const volatile std::byte*>(&bytes[i]));
    }
}

void populate(std::span<const std::byte> bytes, const std::string& name) {
    const auto pages = pages_of(bytes);
    if (::madvise(pages.data(), pages.size(), MADV_POPULATE_READ) == 0) return;
    if (errno == EFAULT || errno == EHWPOISON) {
        fail(ErrorCode::Io,
             "{}: the disk cannot be read, or the file was cut while it was read; check the disk", name);
    }
    touch(bytes);
}

/// Addresses for a mapping, on the boundary of a huge page, so that it can become one. Null where there are
/// none; the rest of the reservation is given back.
void* reserve_aligned(std::size_t size) {
    const std::size_t whole = size + kHugePage;
    void* reserved = ::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        fail(ErrorCode::OutOfMemory, "there are no {} bytes of addresses left for the file", size);
    const auto begin = reinterpret_cast<std::uintptr_t>(reserved);
    const std::uintptr_t aligned = (begin + kHugePage - 1) / kHugePage * kHugePage;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::uintptr_t end = (aligned + size + page - 1) / page * page;
    if (aligned > begin) ::munmap(reserved, aligned - begin);
    if (begin + whole > end) ::munmap(reinterpret_cast<void*>(end), begin + whole - end);
    return reinterpret_cast<void*>(aligned);
}

}  // namespace

void File::Unmap::operator()(void* address) const { ::munmap(address, bytes); }

File File::open(const std::filesystem::path& path) {
    std::string name = path.string();
    const Descriptor descriptor(name.c_str());
    if (descriptor.value() < 0) fail_system(name, "open the file");
    const std::size_t size = regular_file_size(descriptor.value(), name);
    if (size == 0) return {{}, std::move(name)};
    void* address =
        ::mmap(reserve_aligned(size), size, PROT_READ, MAP_SHARED | MAP_FIXED, descriptor.value(), 0);
    if (address == MAP_FAILED) fail_system(name, "map the file");
    // Decoding streams through all of it: where the file system can, pages of 2 MiB save its address
    // translation. A refused hint costs only speed.
    ::madvise(address, size, MADV_HUGEPAGE);
    File file({static_cast<const std::byte*>(address), size}, std::move(name));
    file.mapping_ = {address, Unmap{size}};
    return file;
}

File File::from_bytes(std::span<const std::byte> bytes, std::string name) { return {bytes, std::move(name)}; }

void File::prefault(FunctionRef<void(std::uint64_t)> progress) const {
    for (std::size_t done = 0; done < bytes_.size();) {
        const std::size_t count = std::min(kPrefaultBytes, bytes_.size() - done);
        const auto ahead =
            bytes_.subspan(done + count, std::min(kPrefaultBytes, bytes_.size() - done - count));
        // The disk works on the next stretch while this one is mapped; a refused hint costs only speed.
        if (!ahead.empty()) ::madvise(pages_of(ahead).data(), pages_of(ahead).size(), MADV_WILLNEED);
        populate(bytes_.subspan(done, count), name_);
        done += count;
        progress(done);
    }
}

Reading File::take_into_memory(Reading wish, FunctionRef<void(std::uint64_t)> progress) const {
    if (!mapping_) return wish;
    const Descriptor descriptor(name_.c_str());
    if (descriptor.value() < 0) fail_system(name_, "open the file");
    if (regular_file_size(descriptor.value(), name_) != bytes_.size())
        fail(ErrorCode::Io, "{}: the file has changed while it was open; start again", name_);
    void* memory = ::mmap(mapping_.get(), bytes_.size(), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (memory == MAP_FAILED) {
        fail(ErrorCode::OutOfMemory, "{}: no memory for its {} bytes; use --load-mode mmap", name_,
             bytes_.size());
    }
    ::madvise(memory, bytes_.size(), MADV_HUGEPAGE);
    const std::span<std::byte> to(static_cast<std::byte*>(memory), bytes_.size());
    const Reading read = read_file(descriptor.value(), name_, to, wish, progress);
    ::mprotect(memory, bytes_.size(), PROT_READ);
    return read;
}

}  // namespace coterie::gguf
