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

}  // namespace coterie::grammar
