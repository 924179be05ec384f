#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

/// Counts what a program takes from the heap, to show that a hot path takes nothing. It replaces the
/// program's operator new: include it in one source of a test program.
namespace coterie {

inline std::atomic<std::int64_t> heap_allocations{0};

inline void* count_and_allocate(std::size_t bytes) {
    ++heap_allocations;
    return std::malloc(bytes ? bytes : 1);
}

inline void* count_and_allocate_or_throw(std::size_t bytes) {
    if (void* memory = count_and_allocate(bytes)) return memory;
    throw std::bad_alloc();
}

}  // namespace coterie

// Not inlined: a compiler that sees into only one half of a pair warns of a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    return coterie::count_and_allocate_or_throw(bytes);
}
[[gnu::noinline]] void* operator new[](std::size_t bytes) {
    return coterie::count_and_allocate_or_throw(bytes);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return coterie::count_and_allocate(bytes);
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
    return coterie::count_and_allocate(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
