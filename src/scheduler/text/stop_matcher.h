#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coterie::scheduler {

/// Finds the first of several texts in an answer that comes in pieces, and holds back what may still become
/// one. The result does not depend on how the answer was cut: the match that ends first wins, of those that
/// end together the one that begins first.
class StopMatcher {
  public:
    /// Empty texts never match.
    explicit StopMatcher(std::vector<std::string> stops);

    /// What of the answer is certain after this piece. After a match nothing more comes.
    std::string feed(std::string_view piece);
    /// The end of the answer: what was held back.
    std::string finish();

    /// The text that matched.
    const std::optional<std::string>& matched() const { return matched_; }

  private:
    std::size_t certain_bytes() const;
    std::string take(std::size_t bytes);

    std::vector<std::string> stops_;
    std::string pending_;
    std::optional<std::string> matched_;
};

}  // namespace coterie::scheduler
