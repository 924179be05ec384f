#include "sampling/grammar/token_trie.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace coterie::grammar {

TokenTrie::TokenTrie(std::vector<Entry> entries) {
    std::sort(entries.begin(), entries.end());
    nodes_.pop_back();
    std::string_view before;
    for (const Entry& entry : entries) {
        add(entry, before);
        before = entry.text;
    }
    close_subtrees(0);
    nodes_.push_back({.subtree_end = 0, .first_token = static_cast<std::uint32_t>(tokens_.size())});
    open_ = {};
    find_kinds();
}

/// Sorted texts come in preorder: a text shares the path to its common prefix with the one before it.
void TokenTrie::add(const Entry& entry, std::string_view before) {
    const std::string_view text = entry.text;
    COTERIE_CHECK(!text.empty());
    if (text.size() > std::numeric_limits<std::uint16_t>::max()) {
        fail(ErrorCode::InvalidFile, "token {} of the vocabulary has {} bytes; at most 65535 are supported",
             entry.id, text.size());
    }
    const auto common = static_cast<std::size_t>(
        std::mismatch(text.begin(), text.end(), before.begin(), before.end()).first - text.begin());
    close_subtrees(common + 1);
    for (std::size_t depth = common; depth < text.size(); ++depth) {
        open_.push_back(static_cast<std::uint32_t>(nodes_.size()));
        nodes_.push_back({.subtree_end = 0,
                          .first_token = static_cast<std::uint32_t>(tokens_.size()),
                          .depth = static_cast<std::uint16_t>(depth + 1),
                          .byte = static_cast<std::uint8_t>(text[depth])});
    }
    tokens_.push_back(entry.id);
    longest_ = std::max(longest_, static_cast<std::uint32_t>(text.size()));
}

/// Leaves the first `kept` nodes of the path open.
void TokenTrie::close_subtrees(std::size_t kept) {
    while (open_.size() > kept) {
        nodes_[open_.back()].subtree_end = static_cast<std::uint32_t>(nodes_.size());
        open_.pop_back();
    }
}

/// Children stand behind their parents.
void TokenTrie::find_kinds() {
    kinds_below_.assign(size(), 0);
    for (std::uint32_t node = size(); node-- > 0;) {
        for (std::uint32_t child = node + 1; child < nodes_[node].subtree_end;
             child = nodes_[child].subtree_end)
            kinds_below_[node] |= kinds_from(child, read_utf8(Utf8Place::Between, nodes_[child].byte));
    }
}

/// Of texts that have come to `child`, whose own byte led to `place`.
ByteKinds TokenTrie::kinds_from(std::uint32_t child, Utf8Place place) const {
    const std::uint32_t end = nodes_[child].subtree_end;
    if (place == Utf8Place::Between) {
        const bool ascii = nodes_[child].byte < 0x80;
        return (ascii ? kind_of(nodes_[child].byte) : kCharacters) | kinds_below_[child];
    }
    ByteKinds kinds = kCharacters;
    if (place == Utf8Place::Nowhere) {  // from here on, byte by byte
        kinds = kBroken;
        for (std::uint32_t node = child; node < end; ++node) kinds |= kind_of(nodes_[node].byte);
        return kinds;
    }
    for (std::uint32_t next = child + 1; next < end; next = nodes_[next].subtree_end)
        kinds |= kinds_from(next, read_utf8(place, nodes_[next].byte));
    return kinds;
}

}  // namespace coterie::grammar
