#include "kernels/reference/lanes.h"
#include "kernels/reference/reference.h"

namespace coterie::reference {

// lane[i mod 32] = fma(a, b, lane), then the lanes folded in halves.
float dot_f32(const float* a, const float* b, std::int64_t n) { return dot(a, b, n); }

}  // namespace coterie::reference
