#pragma once

#include <algorithm>
#include <vector>

namespace coterie::engine {

/// The middle one, of an even number the upper of both. Requires: not empty.
inline double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// The median of what `measure` gives, called `rounds` times after once that does not count.
template <typename Measure>
double median_of(int rounds, Measure measure) {
    measure();
    std::vector<double> values;
    for (int round = 0; round < rounds; ++round) values.push_back(measure());
    return median(std::move(values));
}

}  // namespace coterie::engine
