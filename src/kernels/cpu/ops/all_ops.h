#pragma once

// Every op, for the target whose region is open: COTERIE_ISA names its namespace (avx2, avx512), and that
// target's simd_*.h has been included before. One translation unit per target includes this, so each op is
// written once, compiled per target with internal linkage, and chosen at start.

// Later files use earlier ones.
// clang-format off
#include "kernels/cpu/ops/lanes.h"
#include "kernels/cpu/ops/transcendental.h"
#include "kernels/cpu/ops/elementwise.h"
#include "kernels/cpu/ops/row_ops.h"
#include "kernels/cpu/ops/cache_row.h"
#include "kernels/cpu/ops/attention.h"
#include "kernels/cpu/ops/delta_rule.h"
// clang-format on
