// Opens a region whose functions may use AVX2, FMA and F16C; target_end.h closes it. No standard header may
// be included inside: its inline functions would be compiled for this target and could be picked by the
// linker for all. (No include guard: a region may be opened more than once.)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
