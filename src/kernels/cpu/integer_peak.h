#pragma once

#include "base/thread_pool.h"

namespace coterie::cpu {

/// The operations per second (a product and a sum are two) of 8-bit dot products on all threads of the pool,
/// on values that stay in registers: the limit of prompts. Uses the fastest sequence of the instruction set
/// in use: vpdpbusd on AVX-512, vpmaddubsw with vpmaddwd and vpaddd on AVX2. The best of several passes,
/// about 0.2 seconds in all.
double measure_integer_dot_peak(ThreadPool& threads);

}  // namespace coterie::cpu
