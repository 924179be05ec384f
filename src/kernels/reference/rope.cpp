#include <cmath>

#include "kernels/reference/reference.h"

namespace coterie::reference {
namespace {

// a <- fma(a, c, -(b * s)); b <- fma(b, c, a * s): the product of the partner is rounded first.
void rotate(float& a, float& b, float cosine, float sine) {
    const float rotated = std::fma(a, cosine, -(b * sine));
    b = std::fma(b, cosine, a * sine);
    a = rotated;
}

}  // namespace

void rope_adjacent(float* head, const float* cosines, const float* sines, std::int64_t pairs) {
    for (std::int64_t i = 0; i < pairs; ++i) rotate(head[2 * i], head[2 * i + 1], cosines[i], sines[i]);
}

void rope_halves(float* head, const float* cosines, const float* sines, std::int64_t pairs) {
    for (std::int64_t i = 0; i < pairs; ++i) rotate(head[i], head[pairs + i], cosines[i], sines[i]);
}

}  // namespace coterie::reference
