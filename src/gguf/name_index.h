#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace coterie::gguf {

/// Finds the position of a name in a list. It borrows the names.
class NameIndex {
  public:
    NameIndex() = default;

    /// `items` have a `name`; at most 2^32 of them.
    template <typename Items>
    explicit NameIndex(const Items& items) {
        entries_.reserve(items.size());
        for (const auto& item : items) {
            entries_.emplace_back(item.name, static_cast<std::uint32_t>(entries_.size()));
        }
        std::sort(entries_.begin(), entries_.end());
    }

    std::optional<std::uint32_t> find(std::string_view name) const {
        const auto at = std::lower_bound(entries_.begin(), entries_.end(), std::pair(name, std::uint32_t{0}));
        if (at == entries_.end() || at->first != name) return std::nullopt;
        return at->second;
    }

    /// The positions of two items of one name, the earlier one first.
    std::optional<std::pair<std::uint32_t, std::uint32_t>> duplicate() const {
        const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
        const auto at = std::adjacent_find(entries_.begin(), entries_.end(), same);
        if (at == entries_.end()) return std::nullopt;
        return std::pair(at->second, std::next(at)->second);
    }

  private:
    std::vector<std::pair<std::string_view, std::uint32_t>> entries_;
};

}  // namespace coterie::gguf
