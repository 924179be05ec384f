#include "sampling/samplers/samplers.h"

namespace coterie {
namespace {

/// A nucleus is small as a rule: sort a few, and many more each time that they do not suffice.
constexpr std::size_t kFirstSorted = 64;
constexpr std::size_t kGrowth = 8;

}  // namespace

void TopP::apply(Candidates& candidates, Random&) {
    candidates.softmax();
    double sum = 0;
    std::size_t kept = 0;
    std::size_t sorted = kFirstSorted;
    candidates.sort_prefix(sorted);
    while (kept < candidates.size() && sum < p_) {
        if (kept == sorted) candidates.sort_prefix(sorted *= kGrowth);
        sum += candidates[kept++].probability;
    }
    candidates.keep_first(kept);
}

}  // namespace coterie
