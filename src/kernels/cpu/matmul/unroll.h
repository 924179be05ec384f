#pragma once

// COTERIE_UNROLL before a loop of constant length: the sums in its arrays become registers. Sanitizers check
// every step of an unrolled loop, which takes the compiler many minutes and finds nothing more, so there
// loops stay loops.

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(undefined_behavior_sanitizer)
#define COTERIE_KEEP_LOOPS
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COTERIE_KEEP_LOOPS
#endif

#if defined(COTERIE_KEEP_LOOPS)
#define COTERIE_UNROLL
#elif defined(__clang__)
#define COTERIE_UNROLL _Pragma("unroll")
#else
#define COTERIE_UNROLL _Pragma("GCC unroll 16")
#endif
