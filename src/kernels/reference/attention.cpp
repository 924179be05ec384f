#include <algorithm>
#include <cmath>

#include "kernels/reference/lanes.h"
#include "kernels/reference/reference.h"
#include "kernels/reference/transcendental.h"

// Per head, for each page of 64 positions in ascending order, over its visible rows r:
//
//   s_r = dot(q, k_r) * scale          32 lanes over key_width
//   m_p = max s_r
//   p_r = exp(s_r - m_p)
//   l_p = sum of p_r                   32 lanes by r mod 32, rows that are not visible count as +0
//   o_p[d] = fma(p_r, v_r[d], o_p[d])  from +0, r ascending
//
// The first page's m, l and o are taken as they are; every further page joins by
//
//   m' = max(m, m_p), a = exp(m - m'), b = exp(m_p - m')
//   l = fma(l, a, l_p * b), o[d] = fma(o[d], a, o_p[d] * b), m = m'
//
// A sink is one more logit without a value: m' = max(m, sink), a = exp(m - m'), l = fma(l, a, exp(sink -
// m')), o[d] = o[d] * a. At last out[d] = o[d] / l. A NaN or +inf among the scores gives NaN in the head's
// whole output.
namespace coterie::reference {
namespace {

constexpr std::int64_t kPagePositions = 64;

struct Rows {
    std::int64_t begin, end;  ///< visible rows of a page
};

/// The softmax of one head over one page.
struct PageWeights {
    float weights[kPagePositions] = {};
    float maximum = -INFINITY;
    float sum = 0.0f;
};

Rows visible_rows(const cpu::AttentionArgs& args, std::int64_t page) {
    return {std::max<std::int64_t>(args.first - page * kPagePositions, 0),
            std::min(args.last - page * kPagePositions + 1, kPagePositions)};
}

PageWeights page_weights(const cpu::AttentionArgs& args, const float* query, std::int64_t page, Rows rows) {
    PageWeights result;
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
        const std::byte* key = args.key_pages[page] + r * args.key_stride;
        Lanes lanes;
        for (std::int64_t i = 0; i < args.key_width; ++i) {
            lanes.add_product(query[i], load_cache(args.key_type, key, i));
        }
        result.weights[r] = lanes.sum() * args.scale;
        result.maximum = std::max(result.maximum, result.weights[r]);
    }
    Lanes sum;
    for (std::int64_t r = 0; r < kPagePositions; ++r) {
        if (r >= rows.begin && r < rows.end) result.weights[r] = exp(result.weights[r] - result.maximum);
        sum.add(result.weights[r]);
    }
    result.sum = sum.sum();
    return result;
}

float page_value(const cpu::AttentionArgs& args, const PageWeights& page_softmax, std::int64_t page,
                 Rows rows, std::int64_t d) {
    float value = 0.0f;
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
        const std::byte* row = args.value_pages[page] + r * args.value_stride;
        value = std::fma(page_softmax.weights[r], load_cache(args.value_type, row, d), value);
    }
    return value;
}

void attend(const cpu::AttentionArgs& args, std::int64_t head) {
    const float* query = args.queries + head * args.key_width;
    float* out = args.out + head * args.out_stride;
    float maximum = 0.0f;
    float sum = 0.0f;
    const std::int64_t first_page = args.first / kPagePositions;
    for (std::int64_t page = first_page; page <= args.last / kPagePositions; ++page) {
        const Rows rows = visible_rows(args, page);
        const PageWeights softmax = page_weights(args, query, page, rows);
        if (page == first_page) {
            maximum = softmax.maximum;
            sum = softmax.sum;
            for (std::int64_t d = 0; d < args.value_width; ++d)
                out[d] = page_value(args, softmax, page, rows, d);
            continue;
        }
        const float joint = std::max(maximum, softmax.maximum);
        const float a = exp(maximum - joint);
        const float b = exp(softmax.maximum - joint);
        for (std::int64_t d = 0; d < args.value_width; ++d) {
            out[d] = std::fma(out[d], a, page_value(args, softmax, page, rows, d) * b);
        }
        sum = std::fma(sum, a, softmax.sum * b);
        maximum = joint;
    }
    if (args.sinks) {
        const float joint = std::max(maximum, args.sinks[head]);
        const float a = exp(maximum - joint);
        sum = std::fma(sum, a, exp(args.sinks[head] - joint));
        for (std::int64_t d = 0; d < args.value_width; ++d) out[d] *= a;
    }
    for (std::int64_t d = 0; d < args.value_width; ++d) out[d] /= sum;
}

}  // namespace

void attention(const cpu::AttentionArgs& args) {
    for (std::int64_t head = 0; head < args.heads; ++head) attend(args, head);
}

}  // namespace coterie::reference
