#include "cli/suggestion.h"

#include <algorithm>
#include <vector>

namespace coterie::cli {

int edit_distance(std::string_view a, std::string_view b) {
    std::vector<int> before(b.size() + 1);
    std::vector<int> previous(b.size() + 1);
    std::vector<int> current(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = static_cast<int>(j);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        current[0] = static_cast<int>(i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const int replaced = previous[j - 1] + (a[i - 1] != b[j - 1]);
            current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
        }
        std::swap(before, previous);
        std::swap(previous, current);
    }
    return previous[b.size()];
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
    const int limit = std::max<int>(1, static_cast<int>(word.size()) / 3);
    std::optional<std::string> best;
    int best_distance = limit + 1;
    for (const std::string& candidate : candidates) {
        const int distance = edit_distance(word, candidate);
        if (distance >= best_distance) continue;
        best = candidate;
        best_distance = distance;
    }
    return best;
}

}  // namespace coterie::cli
